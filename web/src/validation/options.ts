// Validation: single options. Every reader names the option, what was wanted and what was got.
import { invalidType, invalidValue } from '../errors.js';
import { describe } from './arrays.js';

/** An object of named values, no array. */
export function readObject(name: string, value: unknown): Record<string, unknown> {
  const isMap = Object.prototype.toString.call(value) === '[object Map]';
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    ArrayBuffer.isView(value) ||
    isMap
  ) {
    const cure = isMap ? ' (Object.fromEntries makes one)' : '';
    throw invalidType(`${name}: an object wanted, got ${describe(value)}${cure}`);
  }
  return value as Record<string, unknown>;
}

/** An object whose keys are all known; undefined is an empty one. */
export function readOptions(
  name: string,
  value: unknown,
  known: ReadonlySet<string>,
): Record<string, unknown> {
  if (value === undefined) return {};
  const given = readObject(name, value);
  for (const key of Object.keys(given)) {
    if (!known.has(key)) {
      throw invalidValue(
        `${name}: unknown option ${JSON.stringify(key)}; known are ${[...known].join(', ')}`,
      );
    }
  }
  return given;
}

export function readBoolean(name: string, value: unknown, byDefault: boolean): boolean {
  if (value === undefined) return byDefault;
  if (typeof value !== 'boolean')
    throw invalidType(`${name}: true or false wanted, got ${describe(value)}`);
  return value;
}

export function readFinite(name: string, value: unknown): number {
  if (typeof value !== 'number')
    throw invalidType(`${name}: a number wanted, got ${describe(value)}`);
  if (!Number.isFinite(value)) throw invalidValue(`${name}: a finite number wanted, got ${value}`);
  // The core computes in float32; what does not fit would become infinite there.
  if (!Number.isFinite(Math.fround(value)))
    throw invalidValue(`${name}: a number that fits float32 wanted, got ${value}`);
  return value;
}

/** An integer from `least` to `most`. */
export function readInteger(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number')
    throw invalidType(`${name}: an integer wanted, got ${describe(value)}`);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw invalidValue(`${name}: an integer from ${least} to ${most} wanted, got ${value}`);
  }
  return value + 0; // −0 becomes 0
}

export function readChoice<T extends string>(
  name: string,
  value: unknown,
  choices: readonly T[],
): T {
  if (typeof value !== 'string')
    throw invalidType(`${name}: one of ${quoted(choices)} wanted, got ${describe(value)}`);
  if (!choices.includes(value as T)) {
    throw invalidValue(`${name}: one of ${quoted(choices)} wanted, got ${describe(value)}`);
  }
  return value as T;
}

function quoted(choices: readonly string[]): string {
  return choices.map((choice) => `'${choice}'`).join(', ');
}

/** A seed as two 32-bit words. */
export function readSeed(name: string, value: unknown): [low: number, high: number] {
  const seed = value === undefined ? 0 : readInteger(name, value, 0, Number.MAX_SAFE_INTEGER);
  return [seed % 2 ** 32, Math.floor(seed / 2 ** 32)];
}

/** An AbortSignal of any realm. */
export function readSignal(name: string, value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  const signal = value as Partial<AbortSignal> | null;
  if (
    typeof signal !== 'object' ||
    signal === null ||
    typeof signal.aborted !== 'boolean' ||
    typeof signal.addEventListener !== 'function'
  ) {
    throw invalidType(`${name}: an AbortSignal wanted, got ${describe(value)}`);
  }
  return signal as AbortSignal;
}
