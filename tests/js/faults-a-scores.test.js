// Tests: known faults on the way from scores to weights (A6, A7, A16): softcap, scale, large and tiny numbers.

import { onEveryConfiguration } from './configurations.js';
import { expectClose } from './compare.js';
import { numbers, rows, scores, uniform, zeros } from './tricks.js';
import { byHand } from './tolerances.js';

onEveryConfiguration('A6, softcap', (attention) => {
  test('comes before the mask', async () => {
    const { q, k, v } = uniform([2, 8], 2);
    const { output } = await attention(q, k, v, { softcap: 1, causal: true });
    expect(output.data[0]).toBe(2); // 3.6136 when the mask came first
    expectClose(output, [2, 5], byHand);
  });

  test('is applied, as c · tanh(score / c)', async () => {
    const { q, k, v } = scores([10, 0], [1, 0]);
    const { output } = await attention(q, k, v, { scale: 1, softcap: 1 });
    expectClose(output, [0.7310586], byHand); // 0.9999546 when ignored
    const other = await attention(q, k, v, { scale: 1, softcap: 4 });
    expectClose(other.output, [1 / (1 + Math.exp(-4 * Math.tanh(10 / 4)))], byHand);
  });

  test.each([
    ['omitted', {}],
    ['undefined', { softcap: undefined }],
  ])('%s is none', async (_name, options) => {
    const { q, k, v } = scores([10, 0], [1, 0]);
    const { output } = await attention(q, k, v, { scale: 1, ...options });
    expectClose(output, [0.9999546], byHand);
  });

  test('of scores that are not small caps them, and has no NaN', async () => {
    const { q, k, v } = scores([1000, -1000], [1, 0]);
    const { output } = await attention(q, k, v, { scale: 1, softcap: 1 });
    expectClose(output, [0.880797], byHand);
  });

  test.each([-1, NaN, -Infinity])('%d is refused', async (softcap) => {
    const { q, k, v } = scores([10, 0], [1, 0]);
    await expect(attention(q, k, v, { softcap })).rejects.toThrow(RangeError);
    await expect(attention(q, k, v, { softcap })).rejects.toThrow(/softcap/);
  });
});

onEveryConfiguration('A7, scale', (attention) => {
  const q = rows([[2, 0, 0, 0]]);
  const k = rows([[0, 0, 0, 0], [Math.log(3), 0, 0, 0]]); // prettier-ignore
  const v = rows([0, 4]);

  test.each([
    [undefined, 3], // 1 / √4
    [1, 3.6],
    [0, 2], // a scale like any other, not "none given"
    [-1, 0.4],
  ])('%p gives %d', async (scale, expected) => {
    const { output } = await attention(q, k, v, { scale });
    expectClose(output, [expected], byHand);
  });

  test('omitted gives what undefined gives', async () => {
    const { output } = await attention(q, k, v);
    expectClose(output, [3], byHand);
  });

  test.each([
    [NaN, RangeError],
    [Infinity, RangeError],
    ['0.5', TypeError],
    [null, TypeError],
  ])('%p is refused', async (scale, kind) => {
    await expect(attention(q, k, v, { scale })).rejects.toThrow(kind);
    await expect(attention(q, k, v, { scale })).rejects.toThrow(/scale/);
  });
});

onEveryConfiguration('A16, scores of any size', (attention, { withWeights }) => {
  test.each([
    ['far below', [-10000, 0, 0], [100, 2, 4], 3],
    ['above where exp overflows', [88.8, 88.8, -1e30], [2, 4, 100], 3],
    ['huge and equal', [1e30, 1e30], [2, 4], 3],
    ['the first is the lowest', [-1e30, 0, 1000], [7, 8, 9], 9],
    ['negative and huge', [-1e30, -1e30], [2, 4], 3],
  ])('%s', async (_name, s, values, expected) => {
    const { q, k, v } = scores(s, values);
    const { output } = await attention(q, k, v, { scale: 1 });
    expectClose(output, [expected], byHand);
  });

  test('tiny weights are tiny or zero, never negative, and sum to 1', async () => {
    const identity = Array.from({ length: 4 }, (_, i) =>
      Array.from({ length: 4 }, (_, j) => Number(i === j)),
    );
    const { output, weights } = await attention(
      rows([1]),
      rows([0, -87, -104, -1e4]),
      rows(identity),
      { scale: 1 },
    );
    // With an identity for the values the output is the weights.
    for (const found of withWeights ? [output, weights] : [output]) {
      const [w0, w1, w2, w3] = numbers(found);
      expect(w0).toBe(1);
      expect(w1 === 0 || Math.abs(w1 / 1.6458115e-38 - 1) < 1e-3).toBe(true); // e^-87
      expect([w2 < 1e-44 && w2 >= 0, w3]).toEqual([true, 0]);
    }
  });

  test('a denormal value stays what it is, or is flushed to 0', async () => {
    const { output } = await attention(zeros(1), zeros(1), rows([1e-42]));
    expect([Math.fround(1e-42), 0]).toContain(output.data[0]);
  });

  test('a score that overflows to infinity is NaN or an error, not a silent 0', async () => {
    const call = attention(rows([1e20]), rows([1e20]), rows([1]), { scale: 1 });
    const outcome = await call.catch((error) => error);
    if (outcome instanceof Error) expect(outcome.message).toMatch(/\w/);
    else expect(numbers(outcome.output)).toEqual([NaN]);
  });
});
