// Validation: state dicts as PyTorch writes them: of a part of a model, by a prefix, and in 16-bit floats.
import type { FloatsLike } from '../tensor-types.js';
import { invalidType, invalidValue } from '../errors.js';
import { readHalfFloats } from '../half-floats.js';
import { describe, kindOf } from './arrays.js';
import { readObject } from './options.js';

/** The bits of 16-bit floats, which become float32. (A `Float16Array` needs no `type`.) */
export interface HalfTensorLike {
  readonly data: Uint16Array;
  readonly type: 'float16' | 'bfloat16';
  readonly shape?: ArrayLike<number>;
  readonly dims?: ArrayLike<number>;
}

/** A tensor of a state dict. */
export type StateTensorLike = FloatsLike | HalfTensorLike;

const mostNamed = 3;

/** The tensors whose names begin with `prefix`, by what follows it; without a prefix all. Others are not looked at. */
export function readEntries(what: string, value: unknown, prefix: unknown): [string, unknown][] {
  const entries = Object.entries(readObject(what, value));
  if (prefix === undefined) return entries;
  if (typeof prefix !== 'string')
    throw invalidType(`prefix: a string wanted, got ${describe(prefix)}`);
  const kept = entries.filter(([name]) => name.startsWith(prefix));
  if (kept.length === 0) {
    const names = entries.slice(0, mostNamed).map(([name]) => describe(name));
    const more = entries.length > mostNamed ? ', …' : '';
    throw invalidValue(
      `prefix: one with which names of ${what} begin wanted, got ${describe(prefix)}; they are ${names.join(', ') || 'none'}${more}`,
    );
  }
  return kept.map(([name, tensor]) => [name.slice(prefix.length), tensor]);
}

/** A tensor with 16-bit floats in bits as one of float32; any other value as it is. */
export function widened(name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const { data, type, shape, dims } = value as Partial<HalfTensorLike>;
  if (kindOf(data) !== 'Uint16Array') return value;
  return { data: readHalfFloats(name, data as Uint16Array, type), shape: shape ?? dims };
}
