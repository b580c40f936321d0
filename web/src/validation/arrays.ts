// Validation: arrays of numbers and booleans, of any realm, to plain typed arrays. Kinds are told by behaviour
// (ArrayBuffer.isView, Object.prototype.toString), never by instanceof, which fails across realms.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import { checkAttached, fixed, lengthOf } from './fixed.js';

/** Flat elements, the shape they came in, and whether they came in (nested) arrays. */
export interface ReadArray<A> {
  data: A;
  shape: number[];
  nested: boolean;
}

// The getter that names a typed array by its internal slot, of whatever realm; undefined for everything else. Ten times as
// fast as Object.prototype.toString, which tiny calls would feel.
const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
)?.get as (this: unknown) => string | undefined;

/** 'Float32Array', 'Array', 'Null', 'Number', … */
export function kindOf(value: unknown): string {
  return typedArrayName.call(value) ?? Object.prototype.toString.call(value).slice(8, -1);
}

/** For messages: what a value is, in words. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string')
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined)
    return String(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object') return kindOf(value) === 'Object' ? 'an object' : kindOf(value);
  return `a ${typeof value}`;
}

export function isFloat32Array(value: unknown): value is Float32Array {
  return kindOf(value) === 'Float32Array' && ArrayBuffer.isView(value);
}

const wantedFloats = 'Float32Array, Float64Array, Float16Array or (nested) arrays of numbers';

// Readers take a name in one or two pieces, `name` and `part`, and put them together where it is needed: in messages.

/** Flat float32 elements; a plain Float32Array is passed on (see fixed.ts), everything else is copied. */
export function readFloats(name: string, value: unknown, part = ''): ReadArray<Float32Array> {
  if (ArrayBuffer.isView(value)) {
    switch (kindOf(value)) {
      case 'Float32Array': {
        const data = fixed(name + part, value as Float32Array, Float32Array);
        return { data, shape: [data.length], nested: false };
      }
      case 'Float64Array':
      case 'Float16Array': {
        checkAttached(name + part, value);
        const data = new Float32Array(value as unknown as ArrayLike<number>);
        return { data, shape: [data.length], nested: false };
      }
    }
    throw invalidType(`${name}${part}: ${wantedFloats} wanted, got ${kindOf(value)}`);
  }
  if (!Array.isArray(value))
    throw invalidType(`${name}${part}: ${wantedFloats} wanted, got ${describe(value)}`);
  const shape = nestingOf(name + part, value);
  const data = new Float32Array(count(shape));
  flatten(name + part, value, shape, data, (element, at) => {
    if (typeof element !== 'number') {
      throw invalidType(
        `${name}${part}: numbers wanted, got ${describe(element)} at element ${at}`,
      );
    }
    return element;
  });
  return { data, shape, nested: true };
}

/**
 * Flat bytes, 0 for false; a plain Uint8Array is passed on. Integers of other types, as tokenizers make their masks of, must all
 * be 0 or 1. Numbers in arrays are refused: 0 would hide in a mask and change nothing in a bias.
 */
export function readBooleans(name: string, value: unknown, part = ''): ReadArray<Uint8Array> {
  const wanted = 'a Uint8Array or (nested) arrays of booleans, true = may be attended to,';
  if (ArrayBuffer.isView(value)) {
    const kind = kindOf(value);
    if (kind === 'Uint8Array' || kind === 'Uint8ClampedArray') {
      const data = fixed(name + part, value as Uint8Array, Uint8Array);
      return { data, shape: [data.length], nested: false };
    }
    if (!integerKinds.has(kind)) throw invalidType(`${name}${part}: ${wanted} wanted, got ${kind}`);
    const { data, shape } = readIntegers(name, value, part);
    const wrong = data.findIndex((element) => element !== 0 && element !== 1);
    if (wrong >= 0) {
      throw invalidValue(
        `${name}${part}[${wrong}]: 0 or 1 wanted in a mask of integers, got ${data[wrong]}`,
      );
    }
    return { data: Uint8Array.from(data), shape, nested: false };
  }
  if (!Array.isArray(value))
    throw invalidType(`${name}${part}: ${wanted} wanted, got ${describe(value)}`);
  const shape = nestingOf(name + part, value);
  const data = new Uint8Array(count(shape));
  flatten(name + part, value, shape, data, (element, at) => {
    if (typeof element !== 'boolean') {
      throw invalidType(
        `${name}${part}: booleans wanted (of numbers, x !== 0 makes them), got ${describe(element)} at element ${at}`,
      );
    }
    return element ? 1 : 0;
  });
  return { data, shape, nested: true };
}

const integerKinds = new Set([
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'BigInt64Array',
  'BigUint64Array',
]);

/** Flat integers, bigints among them, each checked to be whole and to fit 32 bits with its sign; always a copy. */
export function readIntegers(name: string, value: unknown, part = ''): ReadArray<Int32Array> {
  let source: ArrayLike<unknown>;
  let shape: number[];
  const nested = Array.isArray(value);
  if (ArrayBuffer.isView(value) && integerKinds.has(kindOf(value))) {
    checkAttached(name + part, value);
    source = value as unknown as ArrayLike<unknown>;
    shape = [lengthOf(value)];
  } else if (nested) {
    shape = nestingOf(name + part, value);
    const flat: unknown[] = new Array<unknown>(count(shape));
    flatten(name + part, value, shape, flat, (element) => element);
    source = flat;
  } else {
    const got = ArrayBuffer.isView(value) ? kindOf(value) : describe(value);
    throw invalidType(
      `${name}${part}: integers in an array or an integer typed array wanted, got ${got}`,
    );
  }
  const data = new Int32Array(count(shape));
  const whole = name + part;
  for (let i = 0; i < data.length; i++) data[i] = readInt32(whole, source[i], i);
  return { data, shape, nested };
}

/** A whole number, or a bigint, that fits 32 bits with its sign. `at`: which element, for messages. */
function readInt32(name: string, value: unknown, at?: number): number {
  const whole = typeof value === 'bigint' ? Number(value) : value;
  if (typeof whole === 'number' && Number.isInteger(whole) && whole === (whole | 0))
    return whole | 0;
  const place = at === undefined ? name : `${name}[${at}]`;
  if (typeof whole !== 'number')
    throw invalidType(`${place}: an integer wanted, got ${describe(value)}`);
  throw invalidValue(`${place}: an integer of 32 bits wanted, got ${describe(value)}`);
}

function count(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

// The first element of each level decides; flatten finds what differs.
function nestingOf(name: string, value: unknown): number[] {
  const shape: number[] = [];
  let level: unknown = value;
  while (Array.isArray(level)) {
    shape.push(level.length);
    if (shape.length > 32) throw invalidShape(`${name}: arrays nested deeper than 32 levels`);
    level = level[0];
  }
  return shape;
}

function flatten<T>(
  name: string,
  value: readonly unknown[],
  shape: readonly number[],
  target: { [index: number]: T },
  convert: (element: unknown, at: number) => T,
): void {
  let at = 0;
  const last = shape.length - 1;
  const walk = (level: unknown, axis: number): void => {
    if (!Array.isArray(level) || level.length !== shape[axis]) {
      const got = Array.isArray(level) ? `${level.length} elements` : describe(level);
      throw invalidShape(
        `${name}: ragged nesting: ${shape[axis]} elements wanted at depth ${axis + 1}, got ${got}`,
      );
    }
    // The loop goes by index, so that a hole is met as undefined.
    for (let i = 0; i < level.length; i++) {
      const element: unknown = level[i];
      if (axis < last) {
        walk(element, axis + 1);
      } else if (Array.isArray(element)) {
        throw invalidShape(
          `${name}: ragged nesting: an array at depth ${axis + 2} where others have none`,
        );
      } else {
        target[at] = convert(element, at);
        at++;
      }
    }
  };
  walk(value, 0);
}
