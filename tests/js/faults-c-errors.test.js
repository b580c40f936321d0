// Tests: errors are errors (C11): of the right kind, with a code, a message that names the argument, and a stack.

import { createEngine } from 'headwise';
import { numbers, rows, uniform, zeros } from './tricks.js';

const x = (...shape) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });
const good = [x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 6)];
const withOptions = (options) => [...good, options];

// [what, arguments, kind, code, what the message says]
const wrongCalls = [
  ['nothing', [], TypeError, 'INVALID_TYPE', /\bq\b/],
  ['no k', [good[0]], TypeError, 'INVALID_TYPE', /\bk\b/],
  ['no v', good.slice(0, 2), TypeError, 'INVALID_TYPE', /\bv\b/],
  ['q is null', [null, good[1], good[2]], TypeError, 'INVALID_TYPE', /\bq\b/],
  ['q is a string', ['q', good[1], good[2]], TypeError, 'INVALID_TYPE', /\bq\b/],
  [
    'integers as floats',
    [{ data: new Uint16Array(24), shape: [1, 2, 3, 4] }, good[1], good[2]],
    TypeError,
    'INVALID_TYPE',
    /q.*Uint16Array/,
  ],
  [
    'too little data',
    [{ data: new Float32Array(23), shape: [1, 2, 3, 4] }, good[1], good[2]],
    RangeError,
    'INVALID_SHAPE',
    /q.*(24.*23|23.*24)/s,
  ],
  [
    'k of another width',
    [good[0], x(1, 2, 5, 7), good[2]],
    RangeError,
    'INVALID_SHAPE',
    /k.*(4.*7|7.*4)/s,
  ],
  [
    'v of another length',
    [good[0], good[1], x(1, 2, 9, 6)],
    RangeError,
    'INVALID_SHAPE',
    /v.*(5.*9|9.*5)/s,
  ],
  ['another batch', [x(3, 2, 3, 4), good[1], good[2]], RangeError, 'INVALID_SHAPE', /1.*3|3.*1/s],
  ['rank 3 without numHeads', [x(1, 3, 8), x(1, 5, 8), x(1, 5, 8)], Error, undefined, /numHeads/],
  ['unknown option', withOptions({ cusal: true }), Error, undefined, /cusal/],
  ['scale NaN', withOptions({ scale: NaN }), RangeError, 'INVALID_VALUE', /scale.*NaN/s],
  ['negative window', withOptions({ window: [-1, 0] }), RangeError, 'INVALID_VALUE', /window.*-1/s],
  [
    'mask of the wrong shape',
    withOptions({ mask: [[true, false]] }),
    RangeError,
    'INVALID_SHAPE',
    /mask/,
  ],
  ['bias of the wrong shape', withOptions({ bias: x(3, 4) }), RangeError, 'INVALID_SHAPE', /bias/],
  [
    'padding of the wrong shape',
    withOptions({ keyPaddingMask: [[true]] }),
    RangeError,
    'INVALID_SHAPE',
    /keyPaddingMask/,
  ],
  [
    'more lengths than batches',
    withOptions({ kvLengths: [1, 2] }),
    RangeError,
    'INVALID_SHAPE',
    /kvLengths/,
  ],
  [
    'a length over S',
    withOptions({ kvLengths: [6] }),
    RangeError,
    'INVALID_VALUE',
    /kvLengths.*(5.*6|6.*5)/s,
  ],
  [
    'offset 1.5',
    withOptions({ causal: true, causalOffset: 1.5 }),
    RangeError,
    'INVALID_VALUE',
    /causalOffset.*1\.5/s,
  ],
  [
    'one slope for two heads',
    withOptions({ alibiSlopes: [1] }),
    RangeError,
    'INVALID_SHAPE',
    /alibiSlopes/,
  ],
  [
    'three sinks for two heads',
    withOptions({ sinks: [1, 2, 3] }),
    RangeError,
    'INVALID_SHAPE',
    /sinks/,
  ],
  [
    'layout unheard of',
    withOptions({ layout: 'hbld' }),
    RangeError,
    'INVALID_VALUE',
    /layout.*hbld/s,
  ],
  [
    'out too short',
    withOptions({ out: new Float32Array(35) }),
    RangeError,
    'INVALID_SHAPE',
    /out.*(35.*36|36.*35)/s,
  ],
  ['out of doubles', withOptions({ out: new Float64Array(36) }), TypeError, 'INVALID_TYPE', /out/],
  [
    'a head that there is not',
    withOptions({ returnWeights: { heads: [2] } }),
    RangeError,
    'INVALID_VALUE',
    /heads.*2/s,
  ],
  [
    'a head named twice',
    withOptions({ returnWeights: { heads: [0, 0] } }),
    RangeError,
    'INVALID_VALUE',
    /heads.*0 twice/s,
  ],
  [
    'scores at no such stage',
    withOptions({ returnScores: 'cooked' }),
    RangeError,
    'INVALID_VALUE',
    /returnScores.*cooked/s,
  ],
  ['causal "yes"', withOptions({ causal: 'yes' }), TypeError, 'INVALID_TYPE', /causal/],
];

describe.each([1, 2])('C11, wrong calls, %i threads, memory grown beforehand', (threads) => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ backend: 'wasm', threads });
    engine.attentionSync(zeros(2, 2048), zeros(9000, 2048), zeros(9000, 1));
  });
  afterAll(() => engine.dispose());

  function check(error, kind, code, message) {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(kind);
    if (code) expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(error.stack).toMatch(/\w/);
  }

  test.each(wrongCalls)('%s', async (_what, args, kind, code, message) => {
    let thrown;
    try {
      engine.attentionSync(...args);
    } catch (error) {
      thrown = error;
    }
    check(thrown, kind, code, message);
    // The asynchronous call rejects; it does not throw where it is called.
    const promise = engine.attention(...args);
    check(
      await promise.then(
        () => undefined,
        (error) => error,
      ),
      kind,
      code,
      message,
    );
    // And the engine works as before.
    const { q, k, v } = uniform([2, 4]);
    expect(numbers(engine.attentionSync(q, k, v).output)).toEqual([3]);
  });

  test('an aborted signal rejects with AbortError', async () => {
    const { q, k, v } = uniform([2, 4]);
    const error = await engine.attention(q, k, v, { signal: AbortSignal.abort() }).catch((e) => e);
    expect(error.name).toBe('AbortError');
    expect(error.code === 'ABORTED' || error.code === 20).toBe(true);
    expect(numbers(engine.attentionSync(q, k, rows([2, 4])).output)).toEqual([3]);
  });
});
