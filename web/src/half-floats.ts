// Numbers: the 16-bit floats, whose bits JavaScript keeps in a Uint16Array wherever it has no Float16Array (bfloat16: always).
// Both ways are exact but for one rounding, to nearest, ties to even.
import { invalidType } from './errors.js';
import { describe } from './validation/arrays.js';
import { checkAttached } from './validation/fixed.js';

/** IEEE 754 binary16 bits to a number. */
export function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** A number to IEEE 754 binary16 bits. */
export function toFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00; // halfway between the largest number and 2^16: to even, infinity
  if (size < 2 ** -14) return sign | roundEven(size * 2 ** 24); // 1024 is the smallest normal number: the bits agree
  const exponent = exponentOf(size);
  // From 1024 to 2048, which carries into the exponent.
  return sign | (((exponent + 14) << 10) + roundEven(size * 2 ** (10 - exponent)));
}

const word = new Uint32Array(1);
const single = new Float32Array(word.buffer);

/** bfloat16 bits, the upper half of a float32, to a number. */
export function fromBfloat16(bits: number): number {
  word[0] = bits << 16;
  return single[0] as number;
}

const readers = new Map<unknown, (bits: number) => number>([
  ['float16', fromFloat16],
  ['bfloat16', fromBfloat16],
]);

/** The bits of 16-bit floats, of the type that goes with them, as numbers. */
export function readHalfFloats(name: string, bits: Uint16Array, type: unknown): Float32Array {
  const read = readers.get(type);
  if (read === undefined) {
    throw invalidType(
      `${name}: a Uint16Array needs type 'float16' or 'bfloat16', got ${describe(type)}`,
    );
  }
  checkAttached(name, bits);
  // A copy, of one moment.
  const own = new Uint16Array(bits);
  const floats = new Float32Array(own.length);
  for (let i = 0; i < own.length; i++) floats[i] = read(own[i] as number);
  return floats;
}

/** A number to bfloat16 bits. */
export function toBfloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  if (value !== 0 && Number.isFinite(value)) {
    const unit = 2 ** (Math.max(exponentOf(Math.abs(value)), -126) - 7);
    single[0] = Math.sign(value) * roundEven(Math.abs(value) / unit) * unit;
  } else {
    single[0] = value;
  }
  return (word[0] as number) >>> 16;
}

/** e with 2^e ≤ size < 2^(e+1); log2 alone may round up to the next whole number. */
function exponentOf(size: number): number {
  const guess = Math.floor(Math.log2(size));
  return 2 ** guess > size ? guess - 1 : guess;
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
