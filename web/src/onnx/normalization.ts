// ONNX: the operators LayerNormalization and RMSNormalization: sums in double over two passes, rounded once.
import { invalidShape, invalidValue } from '../errors.js';
import { readFinite, readInteger, readOptions } from '../validation/options.js';
import { product } from '../validation/shapes.js';
import {
  checkSameType,
  outputTensor,
  readFloatTensor,
  readOptionalFloats,
  type FloatTensor,
  type OnnxFloatType,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link layerNormalization}, by ONNX's names. */
export interface LayerNormalizationInputs {
  X: OnnxTensorLike;
  /** Broadcast right-aligned to the normalised axes. */
  Scale: OnnxTensorLike;
  /** As `Scale`. */
  B?: OnnxTensorLike | undefined;
}

/** Inputs of {@link rmsNormalization}, by ONNX's names. */
export interface RmsNormalizationInputs {
  X: OnnxTensorLike;
  /** Broadcast right-aligned to the normalised axes. */
  scale: OnnxTensorLike;
}

/** Attributes of both. */
export interface NormalizationAttributes {
  /** The first axis that is normalised, with all that follow; from the end when negative. Default −1. */
  axis?: number | undefined;
  /** Added under the square root. Default 1e-5. */
  epsilon?: number | undefined;
  /** The type of `Mean` and `InvStdDev`, as in TensorProto: 1 float32, 10 float16, 11 float64, 16 bfloat16. Default 1. */
  stash_type?: number | undefined;
}

const attributeNames = new Set(['axis', 'epsilon', 'stash_type']);
const stashTypes = new Map<unknown, OnnxFloatType>([
  [1, 'float32'],
  [10, 'float16'],
  [11, 'float64'],
  [16, 'bfloat16'],
]);

/**
 * ONNX LayerNormalization, opset 17 (https://onnx.ai/onnx/operators/onnx__LayerNormalization.html):
 * (X − mean)/√(variance + epsilon)·Scale + B, with the biased variance. Runs at once, on the calling thread.
 *
 * @returns `Y` as X; `Mean` and `InvStdDev`, 1/√(variance + epsilon), with the normalised axes kept as 1.
 * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` or `INVALID_VALUE`.
 */
export function layerNormalization(
  inputs: LayerNormalizationInputs,
  attributes?: NormalizationAttributes,
): { Y: OnnxTensor; Mean: OnnxTensor; InvStdDev: OnnxTensor } {
  const given = readOptions('inputs', inputs, new Set(['X', 'Scale', 'B']));
  const X = readFloatTensor('X', given.X);
  const scale = readFloatTensor('Scale', given.Scale);
  const bias = readOptionalFloats('B', given.B);
  checkSameType('Scale', scale, 'X', X);
  if (bias !== undefined) checkSameType('B', bias, 'X', X);
  const { rows, width, axes, kept, epsilon, stash } = readAxes(X, attributes);
  const scaleAt = broadcastTo('Scale', scale, axes);
  const biasAt = bias === undefined ? undefined : broadcastTo('B', bias, axes);

  const x = X.data;
  const y = new Float64Array(x.length);
  const means = new Float64Array(rows);
  const inverses = new Float64Array(rows);
  for (let r = 0; r < rows; r++) {
    const start = r * width;
    let sum = 0;
    for (let i = 0; i < width; i++) sum += x[start + i] as number;
    const mean = sum / width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += ((x[start + i] as number) - mean) ** 2;
    const inverse = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) {
      y[start + i] = ((x[start + i] as number) - mean) * inverse * scaleAt(i) + (biasAt?.(i) ?? 0);
    }
    means[r] = mean;
    inverses[r] = inverse;
  }
  return {
    Y: outputTensor(X.type, y, X.shape),
    Mean: outputTensor(stash, means, kept),
    InvStdDev: outputTensor(stash, inverses, kept),
  };
}

/**
 * ONNX RMSNormalization, opset 23 (https://onnx.ai/onnx/operators/onnx__RMSNormalization.html):
 * X/√(mean of squares + epsilon)·scale. Runs at once, on the calling thread.
 *
 * @returns `Y` in X's shape and, as ONNX has it, of the type of `scale`.
 * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` or `INVALID_VALUE`.
 */
export function rmsNormalization(
  inputs: RmsNormalizationInputs,
  attributes?: NormalizationAttributes,
): { Y: OnnxTensor } {
  const given = readOptions('inputs', inputs, new Set(['X', 'scale']));
  const X = readFloatTensor('X', given.X);
  const scale = readFloatTensor('scale', given.scale);
  const { rows, width, axes, epsilon } = readAxes(X, attributes);
  const scaleAt = broadcastTo('scale', scale, axes);
  const x = X.data;
  const y = new Float64Array(x.length);
  for (let r = 0; r < rows; r++) {
    const start = r * width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += (x[start + i] as number) ** 2;
    const inverse = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) {
      y[start + i] = (x[start + i] as number) * inverse * scaleAt(i);
    }
  }
  return { Y: outputTensor(scale.type, y, X.shape) };
}

interface Axes {
  /** What is normalised by itself, and how many numbers that is. */
  rows: number;
  width: number;
  /** Sizes of the normalised axes. */
  axes: number[];
  /** X's shape with 1 for them. */
  kept: number[];
  epsilon: number;
  stash: OnnxFloatType;
}

function readAxes({ shape }: FloatTensor, attributes: unknown): Axes {
  const attrs = readOptions('attributes', attributes, attributeNames);
  const axis = readAxis(attrs.axis, shape);
  const epsilon = readFinite('epsilon', attrs.epsilon ?? 1e-5);
  if (epsilon < 0) throw invalidValue(`epsilon: a number from 0 wanted, got ${epsilon}`);
  const stash = stashTypes.get(attrs.stash_type ?? 1);
  if (stash === undefined)
    throw invalidValue(`stash_type: 1, 10, 11 or 16 wanted, got ${String(attrs.stash_type)}`);
  const axes = shape.slice(axis);
  const leading = shape.slice(0, axis);
  const rows = product(leading);
  return {
    rows,
    width: product(axes),
    axes,
    kept: [...leading, ...axes.map(() => 1)],
    epsilon,
    stash,
  };
}

/** An axis of a shape, counted from its end when negative. */
export function readAxis(value: unknown, shape: readonly number[]): number {
  const rank = shape.length;
  if (rank === 0) throw invalidShape('X: a tensor of rank 1 or more wanted, got shape []');
  const axis = readInteger('axis', value ?? -1, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

// The element of a tensor that belongs to the i-th of the normalised numbers.
function broadcastTo(
  name: string,
  { data, shape }: FloatTensor,
  axes: readonly number[],
): (i: number) => number {
  const missing = axes.length - shape.length;
  if (missing < 0 || shape.some((size, axis) => size !== 1 && size !== axes[axis + missing])) {
    throw invalidShape(`${name}: shape [${shape}] does not broadcast to [${axes}]`);
  }
  if (product(shape) === product(axes)) return (i) => data[i] as number;
  const steps = axes.map((_, axis) => {
    const own = axis - missing;
    return own < 0 || shape[own] === 1 ? 0 : product(shape.slice(own + 1));
  });
  return (i) => {
    let rest = i;
    let at = 0;
    for (let axis = axes.length - 1; axis >= 0; axis--) {
      const size = axes[axis] as number;
      at += (rest % size) * (steps[axis] as number);
      rest = Math.floor(rest / size);
    }
    return data[at] as number;
  };
}
