// ONNX: the operators Softmax and Gelu, in double, rounded once.
import { readChoice, readOptions } from '../validation/options.js';
import { product } from '../validation/shapes.js';
import { readAxis } from './normalization.js';
import {
  mapped,
  outputTensor,
  readFloatTensor,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/**
 * ONNX Softmax, opset 13 (https://onnx.ai/onnx/operators/onnx__Softmax.html), over one axis, by default the last. Of nothing
 * but −∞ it is NaN, as ONNX has it; `attention` gives zeros there. Runs at once, on the calling thread.
 *
 * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` or `INVALID_VALUE`.
 */
export function softmax(
  inputs: { input: OnnxTensorLike },
  attributes?: { axis?: number | undefined },
): { output: OnnxTensor } {
  const given = readOptions('inputs', inputs, new Set(['input']));
  const attrs = readOptions('attributes', attributes, new Set(['axis']));
  const { type, data, shape } = readFloatTensor('input', given.input);
  const axis = readAxis(attrs.axis, shape);
  const size = shape[axis] as number;
  const step = product(shape.slice(axis + 1));
  const out = new Float64Array(data.length);
  const count = size === 0 ? 0 : data.length / size;
  for (let line = 0; line < count; line++) {
    const start = Math.floor(line / step) * size * step + (line % step);
    const end = start + size * step;
    let largest = -Infinity;
    for (let at = start; at < end; at += step) largest = Math.max(largest, data[at] as number);
    let sum = 0;
    for (let at = start; at < end; at += step) {
      const power = Math.exp((data[at] as number) - largest);
      out[at] = power;
      sum += power;
    }
    for (let at = start; at < end; at += step) out[at] = (out[at] as number) / sum;
  }
  return { output: outputTensor(type, out, shape) };
}

const approximations = ['none', 'tanh'] as const;

/**
 * ONNX Gelu, opset 20 (https://onnx.ai/onnx/operators/onnx__Gelu.html): ½·x·(1 + erf(x/√2)), or with `approximate: 'tanh'`
 * ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))). Runs at once, on the calling thread.
 *
 * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` or `INVALID_VALUE`.
 */
export function gelu(
  inputs: { X: OnnxTensorLike },
  attributes?: { approximate?: 'none' | 'tanh' | undefined },
): { Y: OnnxTensor } {
  const given = readOptions('inputs', inputs, new Set(['X']));
  const attrs = readOptions('attributes', attributes, new Set(['approximate']));
  const { type, data, shape } = readFloatTensor('X', given.X);
  const kind = readChoice('approximate', attrs.approximate ?? 'none', approximations);
  const out = mapped(data, new Float64Array(data.length), kind === 'tanh' ? tanhGelu : exactGelu);
  return { Y: outputTensor(type, out, shape) };
}

// −∞ · 0 would be NaN; the limit is 0.
function exactGelu(x: number): number {
  return x === -Infinity ? 0 : 0.5 * x * complementaryError(-x * Math.SQRT1_2);
}

function tanhGelu(x: number): number {
  if (x === -Infinity) return 0;
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

/**
 * erfc(x) = 1 − erf(x), within 1e-13 of itself (Abramowitz and Stegun, 7.1.6 and 7.1.14). Of positive numbers it keeps the
 * digits that 1 − erf(x) would lose.
 */
export function complementaryError(x: number): number {
  if (Number.isNaN(x)) return NaN;
  if (x < 0) return 2 - complementaryError(-x);
  const bell = Math.exp(-x * x) / Math.sqrt(Math.PI);
  if (x < 2) {
    // erf(x) = 2/√π · exp(−x²) · Σ 2ⁿ x²ⁿ⁺¹ / (1·3·…·(2n+1)): all terms have one sign.
    let term = x;
    let sum = x;
    for (let n = 1; term > sum * 1e-17; n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return 1 - 2 * bell * sum;
  }
  // exp(−x²)/√π · 1/(x + ½/(x + 1/(x + 1½/(x + 2/(x + …))))), from the end; 60 levels are enough from 2 on.
  let fraction = x;
  for (let n = 60; n >= 1; n--) fraction = x + n / 2 / fraction;
  return bell / fraction;
}
