// Tests: headwise/onnx: the operators without an engine, against numbers worked out by hand or known to many digits.

import * as onnx from 'headwise/onnx';
import { byHand } from './tolerances.js';
import { expectClose, expectSame } from './compare.js';

const f32 = (data, dims) => ({ data: Float32Array.from(data), dims });
const f64 = (data, dims) => ({ data: Float64Array.from(data), dims });

test('gelu keeps its digits where 1 + erf(x/√2) would lose them', () => {
  // x·Φ(x), from tables of the normal distribution to 12 digits.
  const known = [
    [0, 0],
    [1, 0.841344746069],
    [-1, -0.158655253931],
    [2.5, 2.5 * 0.993790334674],
    [-3, -3 * 1.34989803163e-3],
    [-6, -6 * 9.86587645038e-10],
    [-10, -10 * 7.61985302416e-24],
    [Infinity, Infinity],
    [-Infinity, -0],
  ];
  const { Y } = onnx.gelu({
    X: f64(
      known.map(([x]) => x),
      [known.length],
    ),
  });
  known.forEach(([x, wanted], i) => {
    if (Number.isFinite(x))
      expect(Math.abs(Y.data[i] - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 1e-11);
    else expect(Y.data[i]).toBeCloseTo(wanted);
  });
  const tanh = onnx.gelu({ X: f64([1, -2, -Infinity, NaN], [4]) }, { approximate: 'tanh' }).Y;
  const inner = Math.sqrt(2 / Math.PI) * (1 + 0.044715);
  expect(tanh.data[0]).toBeCloseTo(0.5 * (1 + Math.tanh(inner)), 14);
  expect([tanh.data[2] === 0, Number.isNaN(tanh.data[3])]).toEqual([true, true]);
});

test('softmax over any axis, of numbers whose exponentials overflow', () => {
  const { output } = onnx.softmax(
    { input: f32([1000, 1000, -1000, 0, 2000, 3000], [2, 3]) },
    { axis: 0 },
  );
  expectSame(output, [1, 0, 0, 0, 1, 1]);
  const middle = onnx.softmax({ input: f32([0, 1, Math.log(3), 1], [1, 2, 2]) }, { axis: -2 });
  expectClose(middle.output, [0.25, 0.5, 0.75, 0.5], byHand);
  const hidden = onnx.softmax({ input: f32([-Infinity, -Infinity, 0, -Infinity], [2, 2]) });
  expectSame(hidden.output, [NaN, NaN, 1, 0]); // as ONNX has it
  expect(onnx.softmax({ input: f32([], [0, 3]) }).output.dims).toEqual([0, 3]);
  expect(onnx.softmax({ input: f32([], [3, 0]) }).output.dims).toEqual([3, 0]);
});

test('layerNormalization: mean 0, variance 1; scale and bias broadcast over the normalised axes', () => {
  const X = f32([1, 3, 5, 7, 10, 10, 10, 10], [2, 2, 2]);
  const inputs = { X, Scale: f32([1, 10], [2, 1]), B: f32([0, 1], [2]) };
  const { Y, Mean, InvStdDev } = onnx.layerNormalization(inputs, { axis: 1, epsilon: 0 });
  const s = Math.sqrt(5);
  expectClose({ data: Y.data.slice(0, 4) }, [-3 / s, -1 / s + 1, 10 / s, 30 / s + 1], byHand);
  expect([Mean.dims, Array.from(Mean.data), Mean.type]).toEqual([[2, 1, 1], [4, 10], 'float32']);
  expect(InvStdDev.data[0]).toBeCloseTo(1 / s, 6);
  // A thousandth apart at a million: in one pass of float32 this variance would be lost.
  const far = onnx.layerNormalization(
    { X: f64([1e6, 1e6 + 1e-3], [1, 2]), Scale: f64([1], [1]) },
    { epsilon: 0 },
  );
  expectClose(far.Y, [-1, 1], { absolute: 1e-6, relative: 0 });
});

test('rmsNormalization: the mean square is 1; the output is of the type of scale', () => {
  const inputs = { X: f64([3, 4], [1, 2]), scale: f32([1, 2], [2]) };
  const { Y } = onnx.rmsNormalization(inputs, { epsilon: 0 });
  expect(Y.type).toBe('float32');
  expectClose(Y, [3 / Math.sqrt(12.5), 8 / Math.sqrt(12.5)], byHand);
});

describe('rotaryEmbedding', () => {
  const quarter = { cos_cache: f32([1, 1, 0, 0], [2, 2]), sin_cache: f32([0, 0, 1, 1], [2, 2]) };
  const X = f32([1, 2, 3, 4, 5, 6], [1, 1, 1, 6]);
  const at = (position) => ({ data: [position], dims: [1, 1] });

  test('halves, neighbours, and a rest that stays', () => {
    const run = (interleaved) =>
      onnx.rotaryEmbedding(
        { X, ...quarter, position_ids: at(1) },
        { interleaved, rotary_embedding_dim: 4 },
      ).Y;
    expectSame(run(0), [-3, -4, 1, 2, 5, 6]);
    expectSame(run(1), [-2, 1, -4, 3, 5, 6]);
    expectSame(X, [1, 2, 3, 4, 5, 6]);
  });

  test('com.microsoft: one position is where the first row stands; narrow caches turn a part', () => {
    const input = f32([1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6], [1, 1, 2, 6]);
    const { output } = onnx.microsoftRotaryEmbedding({ input, position_ids: 0, ...quarter });
    expectSame(output, [1, 2, 3, 4, 5, 6, -3, -4, 1, 2, 5, 6]);
  });
});
