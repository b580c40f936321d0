// Validation: one fixed view at the moment of reading. A caller's typed array may track a buffer that grows or shrinks, may be of a
// subclass that tells another length, or may be detached by a getter that is read after it. What goes on from here is a plain
// typed array whose length cannot change, but for one case: its buffer may still be transferred. Then its length is 0, and
// `checkAttached` tells that from an empty array.
import { invalidValue } from '../errors.js';

type PlainArray = Float32Array | Int32Array | Uint8Array;
type PlainMaker<A> = { new (length: number): A } & {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): A;
  readonly prototype: A;
};

// The getters of internal slots: a subclass or an own property cannot stand in for them.
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
function slot<T>(of: object, name: string): ((this: unknown) => T) | undefined {
  return Object.getOwnPropertyDescriptor(of, name)?.get as ((this: unknown) => T) | undefined;
}
const lengthSlot = slot<number>(typedArray, 'length') as (this: unknown) => number;
const bufferSlot = slot<ArrayBufferLike>(typedArray, 'buffer') as (this: unknown) => ArrayBuffer;
const offsetSlot = slot<number>(typedArray, 'byteOffset') as (this: unknown) => number;
const setSlot = (typedArray as Float32Array).set as (this: unknown, values: Float32Array) => void;
const resizableSlot = slot<boolean>(ArrayBuffer.prototype, 'resizable');
const growableSlot =
  typeof SharedArrayBuffer === 'function'
    ? slot<boolean>(SharedArrayBuffer.prototype, 'growable')
    : undefined;

// So few are copied at once: V8 keeps small arrays without a buffer of their own, and asking for it would make one.
const fewElements = 16;

/** How many elements a typed array of any kind has now, whatever it says of itself. */
export function lengthOf(array: object): number {
  return lengthSlot.call(array);
}

/** Whether a buffer may get another length. */
function isElasticBuffer(buffer: ArrayBufferLike): boolean {
  try {
    return resizableSlot?.call(buffer) === true;
  } catch {
    return growableSlot?.call(buffer) === true; // a shared one
  }
}

/**
 * A typed array of `Maker`'s kind, of any realm, as a plain one with a fixed length: itself where it is that already. Throws
 * INVALID_VALUE for a detached one.
 */
export function fixed<A extends PlainArray>(name: string, array: A, Maker: PlainMaker<A>): A {
  const length = lengthSlot.call(array);
  if (length <= fewElements) {
    if (length === 0) checkAttached(name, array);
    const copy = new Maker(length);
    for (let i = 0; i < length; i++) copy[i] = array[i] as number;
    return copy;
  }
  const buffer = bufferSlot.call(array);
  const isElastic = isElasticBuffer(buffer);
  if (!isElastic && isPlain(array, Maker)) return array;
  const view = new Maker(buffer, offsetSlot.call(array), length);
  if (!isElastic) return view;
  const copy = new Maker(length);
  copy.set(view);
  return copy;
}

// Whatever is asked of it later, its slots answer. One by one: of names in a list V8 makes no fast check.
function isPlain(array: object, Maker: { readonly prototype: object }): boolean {
  return (
    Object.getPrototypeOf(array) === Maker.prototype &&
    !Object.hasOwn(array, 'length') &&
    !Object.hasOwn(array, 'byteLength') &&
    !Object.hasOwn(array, 'BYTES_PER_ELEMENT') &&
    !Object.hasOwn(array, 'constructor') &&
    !Object.hasOwn(array, 'subarray') &&
    !Object.hasOwn(array, 'slice')
  );
}

/** Whether this is a plain Float32Array over memory of one size. */
export function isPlainFloats(value: unknown): value is Float32Array {
  return (
    ArrayBuffer.isView(value) &&
    isPlain(value, Float32Array) &&
    !isElasticBuffer(bufferSlot.call(value))
  );
}

/** Whether an array's buffer has been transferred or detached. */
export function isDetached(array: object): boolean {
  if (lengthSlot.call(array) > 0) return false;
  try {
    new Uint8Array(bufferSlot.call(array));
    return false;
  } catch {
    return true;
  }
}

/** Throws INVALID_VALUE where an array's buffer has been transferred or detached. */
export function checkAttached(name: string, array: object): void {
  if (isDetached(array))
    throw invalidValue(
      `${name}: an array with its memory wanted, got one whose buffer is detached`,
    );
}

/** Some of an array that was read before. Throws INVALID_VALUE where its buffer has been transferred since. */
export function partOf<A extends PlainArray>(
  name: string,
  array: A,
  begin: number,
  end: number,
): A {
  checkAttached(name, array);
  return array.subarray(begin, end) as A;
}

/** Throws INVALID_VALUE where the caller's array for an output has another length than when the call was made. */
export function checkOut(out: Float32Array, wanted: number): void {
  const length = lengthSlot.call(out);
  if (length !== wanted) {
    throw invalidValue(
      `out: ${wanted} elements wanted when the output is there, got ${length}: its buffer was detached or resized meanwhile`,
    );
  }
}

/** Fills the caller's array for an output, after `checkOut`. */
export function fillOut(out: Float32Array, values: Float32Array): void {
  checkOut(out, values.length);
  setAll(out, values);
}

/** Sets a caller's array, of whatever class, from its beginning on. */
export function setAll(array: Float32Array, values: Float32Array): void {
  setSlot.call(array, values);
}
