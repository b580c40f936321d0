// Tests: mergeAttention: parts over disjoint keys give what one call over all of them gives.
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { randomTensor } from './support/random.js';
import { cached } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

const [q, k, v] = [
  [2, 4, 70, 8],
  [2, 2, 90, 8],
  [2, 2, 90, 5],
].map(randomTensor);
const full = (options) => engine.attentionSync(q, k, v, { ...options, returnLogSumExp: true });
const only = (first, last, options) =>
  full({
    ...options,
    mask: {
      data: Uint8Array.from({ length: 90 }, (_, j) => (j >= first && j < last ? 1 : 0)),
      shape: [90],
    },
  });

test.each([
  [[0, 90]],
  [[0, 30, 90]],
  [[0, 1, 2, 64, 89, 90]],
  [[0, 0, 45, 90, 90]], // the first and the last part see no key at all
])('parts at %j', async (bounds) => {
  for (const options of [{}, { causal: true, causalOffset: -10 }]) {
    const parts = bounds.slice(1).map((end, n) => only(bounds[n], end, options));
    const whole = full(options);
    const result = await engine.mergeAttention(parts);
    expect(result.output.shape).toEqual(whole.output.shape);
    expectClose(result.output, whole.output, cached);
    expectClose(result.logSumExp, whole.logSumExp, cached);
    expectSame(engine.mergeAttentionSync(parts).output, result.output);
  }
});

test('a part without a visible key is left out, whatever it holds', () => {
  const whole = full({});
  const nothing = {
    output: {
      data: new Float32Array(whole.output.data.length).fill(NaN),
      shape: whole.output.shape,
    },
    logSumExp: {
      data: new Float32Array(whole.logSumExp.data.length).fill(-Infinity),
      shape: whole.logSumExp.shape,
    },
  };
  const { output, logSumExp } = engine.mergeAttentionSync([nothing, whole, nothing]);
  expectSame(output, whole.output);
  expectSame(logSumExp, whole.logSumExp);
  const none = engine.mergeAttentionSync([nothing]);
  expect(none.output.data.every((x) => x === 0)).toBe(true);
  expect(none.logSumExp.data.every((x) => x === -Infinity)).toBe(true);
});

test('large log-sum-exps do not overflow', () => {
  const part = (value, lse) => ({
    output: { data: Float32Array.of(value), shape: [1, 1] },
    logSumExp: { data: Float32Array.of(lse), shape: [1, 1, 1] },
  });
  const { output, logSumExp } = engine.mergeAttentionSync([
    part(1, 1000),
    part(4, 1000 + Math.log(2)),
  ]);
  expectClose(output, [3], { absolute: 1e-4, relative: 0 }); // ln 2 beside 1000 has 14 bits left
  expectClose(logSumExp, [1000 + Math.log(3)], { absolute: 1e-4, relative: 0 });
});

test('blhd and rank 3', () => {
  const strided = (options) => {
    const x = [
      [1, 6, 4, 8],
      [1, 9, 2, 8],
      [1, 9, 2, 5],
    ].map(randomTensor);
    return engine.attentionSync(...x, { layout: 'blhd', returnLogSumExp: true, ...options });
  };
  const mask = (first, last) => ({
    data: Uint8Array.from({ length: 9 }, (_, j) => (j >= first && j < last ? 1 : 0)),
    shape: [9],
  });
  const parts = [strided({ mask: mask(0, 4) }), strided({ mask: mask(4, 9) })];
  const { output } = engine.mergeAttentionSync(parts, { layout: 'blhd' });
  expectClose(output, strided({}).output, cached);
  const flat = parts.map((p) => ({ ...p, output: { data: p.output.data, shape: [1, 6, 20] } }));
  expectSame(engine.mergeAttentionSync(flat).output, output);
});

test.each([
  [[], RangeError, /parts/],
  [{}, TypeError, /parts/],
  [[{ output: { data: [1], shape: [1, 1] } }], TypeError, /logSumExp/],
  [
    [{ output: { data: [1], shape: [1, 1] }, logSumExp: { data: [1], shape: [1] } }],
    RangeError,
    /parts\[0\].logSumExp/,
  ],
  [
    [{ output: { data: [1], shape: [1, 1] }, logSumExp: { data: [1, 1], shape: [1, 1, 2] } }],
    RangeError,
    /parts\[0\].logSumExp/,
  ],
])('%j is refused', async (parts, kind, words) => {
  const error = await errorOf(() => engine.mergeAttention(parts));
  expect(error).toBeInstanceOf(kind);
  expect(error.message).toMatch(words);
});
