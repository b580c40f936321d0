// Tests: known faults of dropout (A17). It is an option of the call, for training; evaluation leaves it out.

import { onEveryConfiguration } from './configurations.js';
import { expectSame } from './compare.js';
import { numbers, rows, uniform, zeros } from './tricks.js';
import { meanOfDraws } from './tolerances.js';

const identity = (n) =>
  rows(Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j))));

onEveryConfiguration('A17, dropout', (attention, { withWeights }) => {
  test('rate 0 is none, bit for bit', async () => {
    const q = rows([[0.3, -1], [2, 0.7]]); // prettier-ignore
    const k = rows([[1, 2], [0.5, -0.25], [-3, 1]]); // prettier-ignore
    const v = rows([1, 2, 3]);
    const without = await attention(q, k, v);
    const { output } = await attention(q, k, v, { dropout: { rate: 0, seed: 7 } });
    expectSame(output, without.output);
  });

  test('a seed gives the same weights dropped, the others exactly doubled; what is returned is from before', async () => {
    // Four keys of equal weight 1/4, the identity for values: the output is the weights after dropout.
    const call = () =>
      attention(zeros(64, 1), zeros(4, 1), identity(4), { dropout: { rate: 0.5, seed: 7 } });
    const first = await call();
    const second = await call();
    expectSame(second.output, first.output);
    expect(new Set(numbers(first.output))).toEqual(new Set([0, 0.5]));
    if (withWeights) expect(new Set(numbers(first.weights))).toEqual(new Set([0.25]));
  });

  test('seeds differ', async () => {
    const call = (seed) =>
      attention(zeros(64), zeros(4), identity(4), { dropout: { rate: 0.5, seed } });
    const [one, two] = [await call(1), await call(2)];
    expect(numbers(one.output)).not.toEqual(numbers(two.output));
  });

  test('heads and batches draw for themselves', async () => {
    const q = { data: new Float32Array(4 * 32), shape: [2, 2, 32, 1] };
    const k = { data: new Float32Array(4 * 4), shape: [2, 2, 4, 1] };
    const v = {
      data: Float32Array.from({ length: 64 }, (_, i) => Number(((i >> 2) & 3) === (i & 3))),
      shape: [2, 2, 4, 4],
    };
    const { output } = await attention(q, k, v, { dropout: { rate: 0.5, seed: 7 } });
    const each = [0, 1, 2, 3].map((i) =>
      numbers(output)
        .slice(i * 128, (i + 1) * 128)
        .join(),
    );
    expect(new Set(each).size).toBe(4);
  });

  test('is fair: the mean over 20,000 draws', async () => {
    const { k, v } = uniform([1, 0]);
    const { output } = await attention(zeros(20_000), k, v, { dropout: { rate: 0.5, seed: 7 } });
    const mean = numbers(output).reduce((a, b) => a + b, 0) / 20_000;
    expect(Math.abs(mean - 0.5)).toBeLessThan(meanOfDraws);
  });

  test('rate 1 gives zeros', async () => {
    const { q, k, v } = uniform([1, 2, 3], 2);
    const { output } = await attention(q, k, v, { dropout: { rate: 1, seed: 7 } });
    expect(numbers(output)).toEqual([0, 0]);
  });

  test.each([-0.1, 1.5, NaN])('rate %d is refused', async (rate) => {
    const { q, k, v } = uniform([1, 2]);
    await expect(attention(q, k, v, { dropout: { rate, seed: 7 } })).rejects.toThrow(RangeError);
    await expect(attention(q, k, v, { dropout: { rate, seed: 7 } })).rejects.toThrow(
      /dropout|rate/,
    );
  });
});
