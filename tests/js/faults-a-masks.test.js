// Tests: known faults of attention's masks (A1, A3, A5, A9): rows without a key, hidden NaN, polarity.

import { onEveryConfiguration } from './configurations.js';
import { expectClose } from './compare.js';
import { logWeights, numbers, rows, uniform, zeros } from './tricks.js';
import { byHand } from './tolerances.js';

onEveryConfiguration('A1, a row without a visible key', (attention, { withWeights }) => {
  test('is zero, and so are its weights', async () => {
    const { q, k, v } = logWeights([1, 2], [3, 6], 2);
    const mask = [[true, false], [false, false]]; // prettier-ignore
    const { output, weights } = await attention(q, k, v, { scale: 1, mask });
    expect(numbers(output)).toEqual([3, 0]);
    if (withWeights) expect(numbers(weights)).toEqual([1, 0, 0, 0]);
  });

  test('is zero where causal and padding hide every key between them', async () => {
    const { q, k, v } = uniform([100, 8], 2);
    const { output } = await attention(q, k, v, { causal: true, keyPaddingMask: [[false, true]] });
    expect(numbers(output)).toEqual([0, 8]);
  });

  test('is not one whose keys all have the lowest finite bias: that row is the mean', async () => {
    const { q, k, v } = uniform([3, 6]);
    const bias = rows([[-3.4028235e38, -3.4028235e38]]);
    const { output, logSumExp } = await attention(q, k, v, { bias, returnLogSumExp: true });
    expectClose(output, [4.5], byHand);
    expect(Number.isFinite(logSumExp.data[0])).toBe(true);
  });

  test('a bias and ALiBi whose sum overflows give no NaN', async () => {
    // Both visible keys are one step away, and below the lowest finite number by finite means alone.
    const { q, k, v } = uniform([3, 100, 9]);
    const options = {
      bias: rows([Array(3).fill(-3.4028235e38)]),
      alibiSlopes: [3.4028235e38],
      causalOffset: 1,
      mask: [[true, false, true]],
    };
    const { output } = await attention(q, k, v, options);
    expect([0, 6]).toContain(output.data[0]); // the same on every path, as all calls are
  });
});

onEveryConfiguration('A3, one visible key among many', (attention) => {
  test.each([1, 31, 64, 65, 129, 257, 1000])('of %i', async (keys) => {
    const v = Array.from({ length: keys }, (_, j) => j);
    for (const visible of new Set([0, 1, keys >> 1, keys - 1].filter((j) => j < keys))) {
      const mask = [v.map((j) => j === visible), v.map(() => false)];
      const { q, k } = uniform(v, 2);
      const options = { mask, returnLogSumExp: true };
      const { output, logSumExp } = await attention(q, k, rows(v), options);
      expect(numbers(output)).toEqual([visible, 0]);
      expectClose(logSumExp, [0, -Infinity], byHand);
    }
  });
});

onEveryConfiguration('A5, NaN and infinity behind a mask', (attention) => {
  const hidings = [
    ['mask', { mask: [[true, false]] }],
    ['padding', { keyPaddingMask: [[true, false]] }],
    ['bias', { bias: [[0, -Infinity]] }],
    ['lengths', { kvLengths: [1] }],
    ['causal', { causal: true, causalOffset: 0 }],
    ['window', { window: [0, 0], causalOffset: 0 }],
  ];
  const poisons = [
    ['NaN in both', [0, NaN], [4, NaN]],
    ['infinite value', [0, 0], [4, Infinity]],
    ['infinite key', [0, Infinity], [4, 1]],
    ['NaN key', [0, NaN], [4, 1]],
    ['minus infinity in both', [0, -Infinity], [4, -Infinity]],
  ];
  const table = hidings.flatMap(([how, options]) =>
    poisons.map(([what, k, v]) => [what, how, k, v, options]),
  );

  test.each(table)('%s, hidden by %s', async (_what, _how, k, v, options) => {
    const { output } = await attention(rows([1]), rows(k), rows(v), { scale: 1, ...options });
    expect(numbers(output)).toEqual([4]);
  });

  test('far behind, in other tiles, and in rows past the lengths', async () => {
    // 300 keys of which 130 count; what is hidden is NaN, in wide rows, so that every tail is poisoned too.
    const keys = Array.from({ length: 300 }, (_, j) => Array(7).fill(j < 130 ? 0 : NaN));
    const values = Array.from({ length: 300 }, (_, j) => Array(5).fill(j < 130 ? j : NaN));
    const { output } = await attention(zeros(9, 7), rows(keys), rows(values), {
      kvLengths: [130],
      qLengths: [7],
    });
    expectClose(
      output,
      Array.from({ length: 45 }, (_, i) => (i < 35 ? 64.5 : 0)),
      { absolute: 0, relative: 1e-6 },
    );
  });

  test('a visible NaN reaches its own row only', async () => {
    const mask = [[true, false], [true, true]]; // prettier-ignore
    const { output } = await attention(rows([1, 1]), rows([0, NaN]), rows([4, NaN]), {
      scale: 1,
      mask,
    });
    expect(numbers(output)).toEqual([4, NaN]);
  });
});

onEveryConfiguration('A9, polarity', (attention) => {
  const { q, k, v } = logWeights([1, 2, 3], [6, 12, 18]);

  test.each([
    ['an array', [[true, false, false]]],
    ['a tensor of bytes', { data: Uint8Array.of(1, 0, 0), shape: [1, 3] }],
    ['a tensor of rank 1', { data: Uint8Array.of(1, 0, 0), shape: [3] }],
  ])('true takes part: %s', async (_name, mask) => {
    const { output } = await attention(q, k, v, { scale: 1, mask });
    expect(numbers(output)).toEqual([6]);
  });

  test('bytes without a shape are read that way too, or refused', async () => {
    const mask = Uint8Array.of(1, 0, 0);
    const outcome = await attention(q, k, v, { scale: 1, mask }).catch((error) => error);
    if (outcome instanceof Error) expect(outcome.message).toContain('mask');
    else expect(numbers(outcome.output)).toEqual([6]);
  });

  test('floats are no mask', async () => {
    const mask = { data: Float32Array.of(1, 0, 0), shape: [1, 3] };
    await expect(attention(q, k, v, { scale: 1, mask })).rejects.toThrow(TypeError);
    await expect(attention(q, k, v, { scale: 1, mask })).rejects.toThrow(/mask/);
  });

  test('a bias of 1, 0, 0 is added', async () => {
    const bias = { data: Float32Array.of(1, 0, 0), shape: [1, 3] };
    const { output } = await attention(q, k, v, { scale: 1, bias });
    expectClose(output, [(6 * Math.E + 24 + 54) / (Math.E + 5)], byHand);
  });
});
