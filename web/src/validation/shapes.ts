// Validation: shapes, tensors and what is broadcast. Sizes are multiplied as doubles, which do not wrap.
import { invalidShape, invalidType } from '../errors.js';
import { gpuTensorData } from '../resident.js';
import {
  describe,
  kindOf,
  readBooleans,
  readFloats,
  readIntegers,
  type ReadArray,
} from './arrays.js';
import { lengthOf } from './fixed.js';

/** The largest size of an axis, and the largest stride: what the core's 32-bit fields hold. */
export const maxSize = 2 ** 31 - 1;

// Messages name a shape whole, so an array that is no shape must not become one.
const maxRank = 32;

/** A typed array with its shape. */
export interface Shaped<A> {
  data: A;
  shape: number[];
}

export function product(shape: readonly number[]): number {
  let result = 1;
  for (let axis = 0; axis < shape.length; axis++) result *= shape[axis] as number;
  return result;
}

/** The largest of lengths, 0 of none. Not Math.max(...lengths): 130,000 arguments are too many for a call. */
export function largest(lengths: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < lengths.length; i++) most = Math.max(most, lengths[i] as number);
  return most;
}

/** Sizes as an own array: whole, not negative, none above what the core can count. `part`: see arrays.ts. */
export function readShape(name: string, value: unknown, part = ''): number[] {
  if (!Array.isArray(value) && !(ArrayBuffer.isView(value) && kindOf(value).endsWith('Array'))) {
    throw invalidType(`${name}${part}: an array of sizes wanted, got ${describe(value)}`);
  }
  const rank = Array.isArray(value) ? value.length : lengthOf(value);
  if (rank > maxRank) {
    throw invalidShape(`${name}${part}: at most ${maxRank} sizes wanted, got an array of ${rank}`);
  }
  const sizes: number[] = new Array<number>(rank);
  for (let axis = 0; axis < rank; axis++) {
    const size = (value as ArrayLike<unknown>)[axis];
    if (typeof size !== 'number') {
      throw invalidType(
        `${name}${part}: sizes are numbers, got ${describe(size)} for axis ${axis}`,
      );
    }
    if (!Number.isInteger(size) || size < 0 || size > maxSize) {
      throw invalidShape(
        `${name}${part}: sizes are whole numbers from 0 to ${maxSize}, got ${size} for axis ${axis}`,
      );
    }
    sizes[axis] = size;
  }
  return sizes;
}

/** The number of elements must be the product of the sizes. */
export function checkCount(name: string, count: number, shape: readonly number[]): void {
  const wanted = product(shape);
  if (count !== wanted) {
    throw invalidShape(`${name}: shape [${shape}] has ${wanted} elements, its data has ${count}`);
  }
}

// { data, shape } or { data, dims }.
function readShaped<A extends ArrayLike<number>>(
  name: string,
  value: object,
  read: (name: string, data: unknown, part: string) => ReadArray<A>,
): Shaped<A> {
  const { data, shape, dims } = value as { data?: unknown; shape?: unknown; dims?: unknown };
  const sizes = shape === undefined ? dims : shape;
  if (data === undefined || sizes === undefined) {
    const missing = data === undefined ? 'data' : 'shape';
    throw invalidType(`${name}: { data, shape } wanted, got an object without ${missing}`);
  }
  const array = read(name, data, '.data').data;
  const own = readShape(name, sizes, '.shape');
  checkCount(name, array.length, own);
  return { data: array, shape: own };
}

/** An input tensor of floats: an object with data and shape, or a tensor on the GPU, whose data is then a stand-in. */
export function readTensor(name: string, value: unknown): Shaped<Float32Array> {
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    ArrayBuffer.isView(value)
  ) {
    throw invalidType(`${name}: a tensor { data, shape } wanted, got ${describe(value)}`);
  }
  const onGpu = gpuTensorData(value);
  if (onGpu !== undefined) return { data: onGpu, shape: [...(value as { shape: number[] }).shape] };
  return readShaped(name, value, readFloats);
}

/** Floats as a tensor, as nested arrays, or flat (rank 1). */
export function readAnyFloats(name: string, value: unknown): Shaped<Float32Array> {
  return isShaped(value) ? readShaped(name, value, readFloats) : readFloats(name, value);
}

/** Booleans as { data, shape }, as nested arrays, or flat (rank 1). */
export function readAnyBooleans(name: string, value: unknown): Shaped<Uint8Array> {
  return isShaped(value) ? readShaped(name, value, readBooleans) : readBooleans(name, value);
}

/** Integers as { data, shape }, as nested arrays, or flat (rank 1). */
export function readAnyIntegers(name: string, value: unknown): Shaped<Int32Array> {
  return isShaped(value) ? readShaped(name, value, readIntegers) : readIntegers(name, value);
}

function isShaped(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value)
  );
}

/** The shape must be this one, axis by axis. */
export function checkShape(
  name: string,
  shape: readonly number[],
  wanted: readonly number[],
  letters: string,
): void {
  if (shape.length !== wanted.length || shape.some((size, axis) => size !== wanted[axis])) {
    throw invalidShape(`${name}: shape [${wanted}] (${letters}) wanted, got [${shape}]`);
  }
}

/** Strides of `shape` broadcast, right-aligned, to `target` of rank 4; 0 along an axis that is repeated. */
export function broadcastStrides(
  name: string,
  shape: readonly number[],
  target: readonly [number, number, number, number],
): [number, number, number, number] {
  const missing = 4 - shape.length;
  const strides: [number, number, number, number] = [0, 0, 0, 0];
  let stride = 1;
  for (let axis = 3; axis >= 0; axis--) {
    const size = axis < missing ? 1 : (shape[axis - missing] as number);
    if (size !== 1 && size !== target[axis]) break;
    strides[axis] = size === 1 ? 0 : stride;
    stride *= size;
    if (axis === 0 && missing >= 0) return strides;
  }
  throw invalidShape(`${name}: shape [${shape}] does not broadcast to [B,H,L,S] = [${target}]`);
}
