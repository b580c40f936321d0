// Public: what inputs may be, as types. They stand below tensors and validation, which both look down at them.

/** Numbers nested to any depth, as `tensor([[1, 2], [3, 4]])` takes them. */
export type NestedNumbers = readonly (number | NestedNumbers)[];

/** Numbers or bigints nested to any depth. */
export type NestedIntegers = readonly (number | bigint | NestedIntegers)[];

/** Booleans nested to any depth. */
export type NestedBooleans = readonly (boolean | NestedBooleans)[];

/** An object of the runtime's `Float16Array`, where it has one. */
export interface Float16ArrayLike {
  readonly [Symbol.toStringTag]: 'Float16Array';
  readonly length: number;
  readonly buffer: ArrayBufferLike;
}

/** What is taken as floats. */
export type FloatData = Float32Array | Float64Array | Float16ArrayLike | NestedNumbers;

/** A tensor in this thread's memory. */
export type ArrayTensorLike =
  | { readonly data: FloatData; readonly shape: ArrayLike<number> }
  | { readonly data: FloatData; readonly dims: ArrayLike<number> };

/** Floats with or without a shape: a tensor, nested arrays, or flat data of rank 1. */
export type FloatsLike = ArrayTensorLike | FloatData;

/** An integer typed array; those of 64 bits hold values that fit 32. */
export type IntegerArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** Integers: (nested) arrays of numbers or bigints, or any integer typed array, a tokenizer's int64 among them. */
export type IntegersLike =
  | NestedIntegers
  | IntegerArray
  | { readonly data: NestedIntegers | IntegerArray; readonly shape: ArrayLike<number> }
  | { readonly data: NestedIntegers | IntegerArray; readonly dims: ArrayLike<number> };

/** Flat or nested booleans, or integers that are all 0 or 1. */
export type BooleanData = IntegerArray | NestedBooleans;

/** Booleans: true = may be attended to. Flat data is of rank 1; give `{ data, shape }` for more. */
export type BooleansLike =
  | BooleanData
  | { readonly data: BooleanData; readonly shape: ArrayLike<number> }
  | { readonly data: BooleanData; readonly dims: ArrayLike<number> };

/**
 * A mask of bits, 1 = may be attended to: `shape` is the mask's, and each row of its last axis begins at a byte of its own and
 * takes ⌈size/8⌉ of them, lowest bit first, as NumPy's `packbits(mask, axis=-1, bitorder='little')` writes them.
 */
export interface BitMask {
  readonly bits: Uint8Array;
  readonly shape: ArrayLike<number>;
}

/**
 * A block-sparse mask, the same for all heads and batches: query i may see key j only if block column ⌊j/size⌋ is listed for
 * block row ⌊i/size⌋. Compressed sparse rows: the columns of block row r are `columns[rows[r]]` … `columns[rows[r + 1] − 1]`,
 * ascending; `rows` has ⌈L/size⌉ + 1 elements. What no block lists is not computed.
 */
export interface BlockMask {
  readonly size: number;
  readonly rows: IntegersLike;
  readonly columns: IntegersLike;
}
