// Tests: known faults with shapes (A10 … A14): causal with L ≠ S, groups, sizes of zero, odd widths, layouts.

import { onEveryConfiguration } from './configurations.js';
import { expectClose } from './compare.js';
import { numbers, rows, uniform, zeros } from './tricks.js';
import { byHand } from './tolerances.js';

const filled = (shape, value = 0) => ({
  data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value),
  shape,
});

onEveryConfiguration('A10, causal with other numbers of queries than keys', (attention) => {
  test.each([
    ['the last query sees the last key', [1, 2, 3, 4, 5], 2, {}, [2.5, 3]],
    [
      'offset 0: the first query sees the first key',
      [1, 2, 3, 4, 5],
      2,
      { causalOffset: 0 },
      [1, 1.5],
    ],
    ['one query sees all', [1, 2, 3, 4], 1, {}, [2.5]],
    ['more queries than keys: the first ones see none', [2, 4], 5, {}, [0, 0, 0, 2, 3]],
    ['more queries than keys, offset 0', [2, 4], 5, { causalOffset: 0 }, [2, 3, 3, 3, 3]],
    ['lengths move the corner', [1, 2, 3, 4, 5], 2, { kvLengths: [3] }, [1.5, 2]],
  ])('%s', async (_name, values, queries, options, expected) => {
    const { q, k, v } = uniform(values, queries);
    const { output } = await attention(q, k, v, { causal: true, ...options });
    expectClose(output, expected, byHand);
  });
});

onEveryConfiguration('A11, grouped heads', (attention) => {
  test('head h reads key head floor(h / group)', async () => {
    const v = { data: Float32Array.of(10, 20), shape: [1, 2, 1, 1] };
    const { output } = await attention(filled([1, 4, 1, 1]), filled([1, 2, 1, 1]), v);
    expect(numbers(output)).toEqual([10, 10, 20, 20]);
  });

  test.each([
    [3, 2],
    [2, 0],
    [2, 4],
  ])('%i query heads over %i are refused, both numbers named', async (heads, kvHeads) => {
    const [q, kv] = [filled([1, heads, 1, 1]), filled([1, kvHeads, 1, 1])];
    const error = await attention(q, kv, kv).catch((e) => e);
    expect(error).toBeInstanceOf(RangeError);
    expect(error.code).toBe('INVALID_SHAPE');
    expect(error.message).toMatch(new RegExp(`\\b${heads}\\b`));
    expect(error.message).toMatch(new RegExp(`\\b${kvHeads}\\b`));
  });
});

onEveryConfiguration('A12, sizes of zero', (attention, { withWeights }) => {
  test.each([{}, { causal: true }])('no keys gives zeros %p', async (options) => {
    const { output, weights, logSumExp } = await attention(
      filled([1, 1, 2, 4], 1),
      filled([1, 1, 0, 4]),
      filled([1, 1, 0, 3]),
      { ...options, returnLogSumExp: true },
    );
    expect(output.shape).toEqual([1, 1, 2, 3]);
    expect(numbers(output)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(numbers(logSumExp)).toEqual([-Infinity, -Infinity]);
    if (withWeights) expect(weights.shape).toEqual([1, 1, 2, 0]);
  });

  test.each([
    ['no queries', [1, 1, 0, 4], [1, 1, 3, 4], [1, 1, 3, 2], [1, 1, 0, 2], [1, 1, 0, 3]],
    ['no batch', [0, 2, 5, 4], [0, 2, 3, 4], [0, 2, 3, 2], [0, 2, 5, 2], [0, 2, 5, 3]],
    ['no value channels', [1, 1, 2, 4], [1, 1, 3, 4], [1, 1, 3, 0], [1, 1, 2, 0], [1, 1, 2, 3]],
  ])('%s', async (_name, qShape, kShape, vShape, outShape, weightShape) => {
    for (const options of [{}, { causal: true }]) {
      const { output, weights } = await attention(
        filled(qShape),
        filled(kShape),
        filled(vShape),
        options,
      );
      expect(output.shape).toEqual(outShape);
      expect(output.data).toHaveLength(0);
      if (withWeights) expect(weights.shape).toEqual(weightShape);
    }
  });

  test.each([-1, 1.5, NaN])('a size of %d is refused', async (size) => {
    const q = { data: new Float32Array(4), shape: [1, 1, size, 4] };
    await expect(attention(q, zeros(1, 4), zeros(1, 4))).rejects.toThrow(RangeError);
    const flat = { data: new Float32Array(4), shape: [1, 1, 4] };
    await expect(attention(flat, flat, flat, { numHeads: size })).rejects.toThrow(RangeError);
  });
});

onEveryConfiguration('A13, widths that fill no vector', (attention) => {
  const guard = 12345.5;
  const valueDims = [1, 2, 3, 5, 8, 17];

  test.each([1, 2, 3, 4, 5, 7, 8, 9, 15, 31, 33, 63, 65, 80])('D = %i', async (dim) => {
    const widthOf = (fill, last) => [...Array(dim - 1).fill(fill), last];
    const q = rows([widthOf(0, 1)]);
    const k = rows([widthOf(9, 0), widthOf(9, Math.log(2))]);
    for (const valueDim of valueDims) {
      const lanes = (fill, last) => [...Array(valueDim - 1).fill(fill), last];
      const v = rows([lanes(3, 0), lanes(6, 9)]);
      const around = new Float32Array(valueDim + 16).fill(guard);
      const out = around.subarray(8, 8 + valueDim);
      const { output } = await attention(q, k, v, { scale: 1, out });
      expectClose(output, lanes(5, 6), byHand, `Dv ${valueDim}`);
      expectClose(out, lanes(5, 6), byHand, `out, Dv ${valueDim}`);
      expect(around.slice(0, 8).every((x) => x === guard)).toBe(true);
      expect(around.slice(8 + valueDim).every((x) => x === guard)).toBe(true);
    }
  });
});

onEveryConfiguration('A14, layouts', (attention) => {
  const headsFirst = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 2, 2, 1] };
  const sequenceFirst = { data: Float32Array.of(1, 3, 2, 4), shape: [1, 2, 2, 1] };
  const none = filled([1, 2, 2, 1]);

  test('heads first, and sequence first', async () => {
    const first = await attention(none, none, headsFirst);
    expect(numbers(first.output)).toEqual([1.5, 1.5, 3.5, 3.5]);
    const second = await attention(none, none, sequenceFirst, { layout: 'blhd' });
    expect(second.output.shape).toEqual([1, 2, 2, 1]);
    expect(numbers(second.output)).toEqual([1.5, 3.5, 1.5, 3.5]);
  });

  test('rank 3 is sequence first, its heads side by side', async () => {
    const flat = { data: sequenceFirst.data, shape: [1, 2, 2] };
    const nothing = filled([1, 2, 2]);
    const { output } = await attention(nothing, nothing, flat, { numHeads: 2 });
    expect(output.shape).toEqual([1, 2, 2]);
    expect(numbers(output)).toEqual([1.5, 3.5, 1.5, 3.5]);
  });

  test('data of another length than the shape says is refused, the expected length named', async () => {
    const short = { data: new Float32Array(7), shape: [1, 2, 2, 2] };
    const good = filled([1, 2, 2, 2]);
    await expect(attention(good, good, short)).rejects.toThrow(RangeError);
    await expect(attention(good, good, short)).rejects.toThrow(/\b8\b/);
  });
});
