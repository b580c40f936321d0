// Public: tensors, the package's inputs and outputs.
import { invalidShape } from './errors.js';
import type { FloatData, NestedNumbers } from './tensor-types.js';
import { readFloats } from './validation/arrays.js';
import { isPlainFloats } from './validation/fixed.js';
import { checkCount, readShape } from './validation/shapes.js';

/** A row-major float32 tensor that owns its data. */
export class Tensor {
  /** The elements in row-major order. Never a view of the WebAssembly heap; its buffer may be transferred. */
  readonly data: Float32Array;
  /** The size of each axis. */
  readonly shape: readonly number[];

  /** Use {@link tensor}, which checks its arguments. */
  constructor(data: Float32Array, shape: readonly number[]) {
    this.data = data;
    this.shape = shape;
  }

  /** The elements as nested arrays, one level an axis; a number for a tensor of rank 0. */
  toArray(): number | NestedNumbers {
    let at = 0;
    const walk = (axis: number): number | NestedNumbers => {
      if (axis === this.shape.length) return this.data[at++] as number;
      const level: (number | NestedNumbers)[] = [];
      for (let i = 0; i < (this.shape[axis] as number); i++) level.push(walk(axis + 1));
      return level;
    };
    return walk(0);
  }
}

/**
 * Makes a tensor. With a shape, `data` is in row-major order and is used without a copy when it is a `Float32Array`; nested
 * arrays without a shape give their own.
 *
 * @param data `Float32Array`, `Float64Array`, `Float16Array`, or numbers in (nested) arrays.
 * @param shape the size of each axis; by default that of the nesting, `[length]` for flat data.
 * @throws TypeError `INVALID_TYPE` for data that is not floats, RangeError `INVALID_SHAPE` for ragged nesting or when the
 * number of elements and the shape do not agree.
 */
export function tensor(data: FloatData, shape?: ArrayLike<number>): Tensor {
  const floats = readFloats('data', data);
  // Few elements were copied on reading; the tensor holds the array that was given.
  if (isPlainFloats(data)) floats.data = data;
  if (shape === undefined) return new Tensor(floats.data, floats.shape);
  const sizes = readShape('shape', shape);
  checkCount('data', floats.data.length, sizes);
  if (floats.nested && floats.shape.length > 1 && !sameShape(floats.shape, sizes)) {
    throw invalidShape(`shape: the arrays are nested as [${floats.shape}], not as [${sizes}]`);
  }
  return new Tensor(floats.data, sizes);
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}
