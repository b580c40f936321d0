// Tests: `out`, the caller's array for the output, that is taken away or resized before, during or after a call: a typed error, and
// the engine goes on.

import { createEngine } from 'headwise';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { detach, resizable } from './support/traps.js';

const inputs = (size) => [1, 2, 3].map((seed) => randomTensor([1, 1, size, 4], seed));
// Below and above the number of elements that are written one by one.
const sizes = [3, 40];
const acts = {
  detached: detach,
  shrunk: ({ buffer }) => buffer.resize(16),
  grown: ({ buffer }) => buffer.resize(buffer.byteLength + 16),
};
const cases = sizes.flatMap((size) => Object.keys(acts).map((act) => [act, size]));
const isOutError = { name: 'RangeError', message: expect.stringMatching(/^out: /) };

describe.each([false, true])('an engine in a worker: %p', (offMainThread) => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread });
  });
  afterAll(async () => {
    await expectWorks(engine);
    engine.dispose();
  });

  test.each(cases)('%s before the call, %i rows', async (act, size) => {
    const out = resizable(new Float32Array(size * 4));
    acts[act](out);
    const call = () => engine.attention(...inputs(size), { out });
    if (act === 'grown') expect((await call()).output.data).toBe(out);
    else expect(await errorOf(call)).toMatchObject(isOutError);
  });

  // A view that has its buffer's length, so that growing changes it.
  test.each(cases)('%s while the call runs, %i rows', async (act, size) => {
    const out = resizable(new Float32Array(size * 4), true);
    const { inUseBytes } = await engine.memory();
    const running = engine.attention(...inputs(size), { out });
    acts[act](out);
    expect(await errorOf(() => running)).toMatchObject({ ...isOutError, code: 'INVALID_VALUE' });
    expect((await engine.memory()).inUseBytes).toBe(inUseBytes);
  });

  test.each(cases)('%s by what is read last, %i rows', async (act, size) => {
    const out = resizable(new Float32Array(size * 4), true);
    const signal = {
      get aborted() {
        if (!out.buffer.detached && out.length === size * 4) acts[act](out);
        return false;
      },
      addEventListener: () => undefined,
    };
    const call = (method) => () => engine[method](...inputs(size), { out, signal });
    expect(await errorOf(call(offMainThread ? 'attention' : 'attentionSync'))).toMatchObject(
      isOutError,
    );
  });
});

test('an array that lies about its length or its methods is filled by what it is', async () => {
  const engine = await createEngine({ backend: 'wasm', threads: 1 });
  class Liar extends Float32Array {
    get length() {
      return 160;
    }
    set() {
      throw new Error('this array is not to be set so');
    }
  }
  const expected = engine.attentionSync(...inputs(40)).output.data;
  const short = await errorOf(() => engine.attention(...inputs(40), { out: new Liar(8) }));
  expect(short).toMatchObject({ ...isOutError, code: 'INVALID_SHAPE' });
  for (const method of ['attention', 'attentionSync']) {
    const out = new Liar(160);
    expect((await engine[method](...inputs(40), { out })).output.data).toBe(out);
    expect([...new Float32Array(out.buffer)]).toEqual([...expected]);
  }
  engine.dispose();
});
