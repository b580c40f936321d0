// ONNX: tensors that know their element type, in and out. Inside, floats are Float32Array (float64: Float64Array), integers
// Int32Array, booleans Uint8Array. Start reading at readFloatTensor.
import type { Float16ArrayLike, NestedBooleans, NestedNumbers } from '../tensor-types.js';
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import { describe, kindOf, readBooleans, readFloats, readIntegers } from '../validation/arrays.js';
import { checkCount, readShape } from '../validation/shapes.js';
import { readHalfFloats, toBfloat16, toFloat16 } from '../half-floats.js';

/** Element types of floating-point tensors. */
export type OnnxFloatType = 'float32' | 'float16' | 'bfloat16' | 'float64';

/** Element types, by onnxruntime-web's names. */
export type OnnxType = OnnxFloatType | 'int32' | 'int64' | 'bool';

/** Elements in row-major order. */
export type OnnxData =
  | Float32Array
  | Float64Array
  | Float16ArrayLike
  | Uint16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | NestedNumbers
  | NestedBooleans;

/**
 * An input. Tensors of onnxruntime-web (`type`, `data`, `dims`) and of this package (`data`, `shape`) pass straight through.
 * Without `type` the data decides: `Float32Array` and arrays of numbers are float32, `Float64Array` float64, `Float16Array`
 * float16, `Int32Array` int32, `BigInt64Array` int64, `Uint8Array` and arrays of booleans bool. The bits of 16-bit floats in
 * a `Uint16Array` need `type: 'float16'` or `'bfloat16'`.
 */
export type OnnxTensorLike =
  | {
      readonly data: OnnxData;
      readonly dims: ArrayLike<number>;
      readonly type?: string | undefined;
    }
  | {
      readonly data: OnnxData;
      readonly shape: ArrayLike<number>;
      readonly type?: string | undefined;
    };

/** Integers: a tensor, an array (of rank 1), or one number. int64 values must fit 32 bits. */
export type OnnxIntegersLike = OnnxTensorLike | Int32Array | BigInt64Array | NestedNumbers | number;

/**
 * An output, with own data. float32 comes as `Float32Array`, float64 as `Float64Array`, float16 as `Float16Array` where the
 * runtime has it and otherwise as the bits in a `Uint16Array`, bfloat16 as the bits in a `Uint16Array` always.
 */
export interface OnnxTensor {
  readonly type: OnnxFloatType;
  readonly data: Float32Array | Float64Array | Float16ArrayLike | Uint16Array;
  /** The size of each axis, as onnxruntime-web names it … */
  readonly dims: readonly number[];
  /** … and as this package does. */
  readonly shape: readonly number[];
}

export type Floats = Float32Array | Float64Array;

/** A checked tensor of floats. */
export interface FloatTensor {
  type: OnnxFloatType;
  data: Floats;
  shape: number[];
}

/** A checked tensor of integers. */
export interface IntegerTensor {
  data: Int32Array;
  shape: number[];
}

/** A checked mask: what to add to the scores, or what may be attended to. */
export type MaskTensor =
  (FloatTensor & { kind: 'bias' }) | { kind: 'mask'; data: Uint8Array; shape: number[] };

/** As many zeros as wanted, in an array like this one. */
export function zerosLike(data: Floats, length: number): Floats {
  return data.BYTES_PER_ELEMENT === 8 ? new Float64Array(length) : new Float32Array(length);
}

/** Every element through a function, into an array of another type. `from` of typed arrays goes through an iterator. */
export function mapped<A extends Floats | Uint16Array>(
  from: Floats | Uint16Array,
  to: A,
  convert: (element: number) => number,
): A {
  for (let i = 0; i < from.length; i++) to[i] = convert(from[i] as number);
  return to;
}

interface Parts {
  data: unknown;
  sizes: unknown;
  type: unknown;
}

function partsOf(name: string, value: unknown): Parts {
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    ArrayBuffer.isView(value)
  ) {
    throw invalidType(`${name}: a tensor { data, dims } wanted, got ${describe(value)}`);
  }
  const { data, dims, shape, type } = value as Record<string, unknown>;
  const sizes = dims ?? shape;
  if (data === undefined || sizes === undefined) {
    const missing = data === undefined ? 'data' : 'dims';
    throw invalidType(`${name}: { data, dims } wanted, got an object without ${missing}`);
  }
  return { data, sizes, type };
}

function shapeOf(name: string, sizes: unknown, count: number): number[] {
  const shape = readShape(`${name}.dims`, sizes);
  checkCount(name, count, shape);
  return shape;
}

const floatTypes = new Set<unknown>(['float32', 'float16', 'bfloat16', 'float64']);

const floatKinds: Record<string, OnnxFloatType> = {
  Float32Array: 'float32',
  Float64Array: 'float64',
  Float16Array: 'float16',
  Array: 'float32',
};

/** A tensor of floats of any type. */
export function readFloatTensor(name: string, value: unknown, wanted = 'floats'): FloatTensor {
  const { data, sizes, type } = partsOf(name, value);
  const kind = kindOf(data);
  if (kind === 'Uint16Array') {
    const floats = readHalfFloats(name, data as Uint16Array, type);
    return {
      type: type as OnnxFloatType,
      data: floats,
      shape: shapeOf(name, sizes, floats.length),
    };
  }
  if (type !== undefined && !floatTypes.has(type)) {
    throw invalidType(`${name}: ${wanted} wanted, got type ${describe(type)}`);
  }
  const found = floatKinds[kind];
  if (found === undefined || (type !== undefined && type !== found)) {
    const elements = type === undefined ? wanted : `the data of ${describe(type)}`;
    throw invalidType(`${name}: ${elements} wanted, got ${describe(data)}`);
  }
  const floats =
    kind === 'Float64Array'
      ? (data as Float64Array)
      : readFloats(`${name}.data`, data as Float32Array).data;
  return { type: found, data: floats, shape: shapeOf(name, sizes, floats.length) };
}

/** The same, where `undefined` is allowed. */
export function readOptionalFloats(name: string, value: unknown): FloatTensor | undefined {
  return value === undefined ? undefined : readFloatTensor(name, value);
}

/** The types must agree: ONNX gives both the same type variable. */
export function checkSameType(
  name: string,
  { type }: FloatTensor,
  otherName: string,
  other: FloatTensor,
): void {
  if (type !== other.type) {
    throw invalidType(`${name}: ${other.type} like ${otherName} wanted, got ${type}`);
  }
}

/** Integers of 32 or 64 bits. A bare array has rank 1, a number rank 0. */
export function readIntegerTensor(name: string, value: unknown): IntegerTensor {
  if (typeof value === 'number' || typeof value === 'bigint') {
    return { data: integersOf(name, [Number(value)]), shape: [] };
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const data = integersOf(name, value);
    return { data, shape: [data.length] };
  }
  const { data, sizes, type } = partsOf(name, value);
  if (type !== undefined && type !== 'int32' && type !== 'int64') {
    throw invalidType(`${name}: type 'int32' or 'int64' wanted, got ${describe(type)}`);
  }
  const integers = integersOf(`${name}.data`, data);
  return { data: integers, shape: shapeOf(name, sizes, integers.length) };
}

function integersOf(name: string, data: unknown): Int32Array {
  // What a BigInt64Array holds beyond 53 bits does not fit 32 bits either, and is refused all the same.
  const plain = kindOf(data) === 'BigInt64Array' ? Array.from(data as BigInt64Array, Number) : data;
  return readIntegers(name, plain).data;
}

/** One integer, as a number or a tensor of one element. */
export function readScalar(name: string, value: unknown): number {
  const { data, shape } = readIntegerTensor(name, value);
  if (data.length !== 1) throw invalidShape(`${name}: one element wanted, got shape [${shape}]`);
  return data[0] as number;
}

/** Floats to add, or booleans (true = may be attended to). */
export function readMaskTensor(name: string, value: unknown): MaskTensor {
  const { data, sizes, type } = partsOf(name, value);
  let leaf: unknown = data;
  while (Array.isArray(leaf)) leaf = leaf[0];
  const kind = kindOf(data);
  const isBoolean = kind === 'Uint8Array' || kind === 'Uint8ClampedArray' || leaf === true;
  if (!isBoolean && leaf !== false) {
    return { kind: 'bias', ...readFloatTensor(name, value, 'booleans (bool) or floats') };
  }
  if (type !== undefined && type !== 'bool') {
    throw invalidType(`${name}: type 'bool' for booleans wanted, got ${describe(type)}`);
  }
  const booleans = readBooleans(`${name}.data`, data).data;
  return { kind: 'mask', data: booleans, shape: shapeOf(name, sizes, booleans.length) };
}

/** Values to an output of a type, rounded once to it. `values` may become its data: they must be nobody else's. */
export function outputTensor(
  type: OnnxFloatType,
  values: Floats,
  shape: readonly number[],
): OnnxTensor {
  return { type, data: dataOf(type, values), dims: shape, shape };
}

type Float16Constructor = new (values: Floats) => Float16ArrayLike;

function dataOf(type: OnnxFloatType, values: Floats): OnnxTensor['data'] {
  switch (type) {
    case 'float32':
      return values.BYTES_PER_ELEMENT === 4 ? values : new Float32Array(values);
    case 'float64':
      return values.BYTES_PER_ELEMENT === 8 ? values : new Float64Array(values);
    case 'bfloat16':
      return mapped(values, new Uint16Array(values.length), toBfloat16);
    case 'float16': {
      const { Float16Array: native } = globalThis as { Float16Array?: Float16Constructor };
      return native === undefined
        ? mapped(values, new Uint16Array(values.length), toFloat16)
        : new native(values);
    }
  }
}

/** An attribute of ONNX that is a flag: 0 or 1, or a boolean. */
export function readFlag(name: string, value: unknown): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  if (value !== 0 && value !== 1)
    throw invalidValue(`${name}: 0 or 1 wanted, got ${describe(value)}`);
  return value === 1;
}
