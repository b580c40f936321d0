// Options: how each option's value is read and checked, once the sizes are known. Which option has which reader stands in table.ts.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { AttentionSettings, BroadcastStrides } from '../request.js';
import { describe, isFloat32Array } from '../validation/arrays.js';
import { checkAttached, lengthOf } from '../validation/fixed.js';
import {
  readChoice,
  readFinite,
  readInteger,
  readOptions,
  readSeed,
} from '../validation/options.js';
import {
  broadcastStrides,
  checkShape,
  readAnyBooleans,
  readAnyFloats,
  readAnyIntegers,
  type Shaped,
} from '../validation/shapes.js';
import { isBitMask, readBitMask } from '../validation/sparse-masks.js';
import type { ScoreStage } from './masking-options.js';

/** [B,H,L,S]. */
export type Target = [number, number, number, number];

const scoreStages = { raw: 1, softcapped: 2, masked: 3 } as const;
const scoreStageNames = Object.keys(scoreStages) as ScoreStage[];
const dropoutNames = new Set(['rate', 'seed']);
const returnWeightsNames = new Set(['heads']);

// Far beyond any tensor of a 4 GiB heap, and its double still fits 32 bits.
const farthest = 2 ** 30;

/** Sizes that the options are checked against. */
export interface CallSizes {
  batch: number;
  heads: number;
  queries: number;
  keys: number;
}

/** A call's sizes as what masks are broadcast to. */
export function targetOf({ batch, heads, queries, keys }: CallSizes): Target {
  return [batch, heads, queries, keys];
}

export function readSoftcap(value: unknown): number {
  const cap = readFinite('softcap', value);
  // A cap that float32 rounds to 0 would silently mean 'none'.
  if (cap < 0 || (cap > 0 && Math.fround(cap) === 0)) {
    throw invalidValue(`softcap: a number above 0 wanted (0: none), got ${cap}`);
  }
  return cap;
}

export function readWindow(value: unknown): [number, number] {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) {
    throw invalidType(`window: [left, right] wanted, got ${describe(value)}`);
  }
  const sides = value as unknown as ArrayLike<unknown>;
  if (sides.length !== 2)
    throw invalidShape(`window: [left, right] wanted, got ${sides.length} elements`);
  return [readSide('window[0]', sides[0]), readSide('window[1]', sides[1])];
}

function readSide(name: string, value: unknown): number {
  if (typeof value !== 'number')
    throw invalidType(`${name}: a number wanted, got ${describe(value)}`);
  if (value === Infinity) return -1;
  if (!Number.isInteger(value) || value < 0) {
    throw invalidValue(`${name}: a whole number from 0, or Infinity, wanted, got ${value}`);
  }
  return value >= farthest ? -1 : value + 0;
}

export function readScoreStage(value: unknown): number {
  return scoreStages[readChoice('returnScores', value, scoreStageNames)];
}

export function readMask(value: unknown, target: Target): NonNullable<AttentionSettings['mask']> {
  if (isBitMask(value)) return readBitMask(value, target);
  return broadcast('mask', readAnyBooleans('mask', value), target);
}

export function readKeyPaddingMask(value: unknown, batch: number, keys: number): Uint8Array {
  const { data, shape } = readAnyBooleans('keyPaddingMask', value);
  const flat = batch === 1 && shape.length === 1 && shape[0] === keys; // [S] for one batch
  if (!flat) checkShape('keyPaddingMask', shape, [batch, keys], '[B,S]');
  return data;
}

export function readDropout(value: unknown): AttentionSettings['dropout'] {
  const { rate, seed } = readOptions('dropout', value, dropoutNames);
  const fraction = readFinite('dropout.rate', rate);
  if (fraction < 0 || fraction > 1)
    throw invalidValue(`dropout.rate: a number from 0 to 1 wanted, got ${fraction}`);
  const words = readSeed('dropout.seed', seed);
  return fraction > 0 ? { rate: fraction, seed: words } : undefined;
}

export function broadcast<A>(
  name: string,
  { data, shape }: Shaped<A>,
  target: Target,
): { data: A; strides: BroadcastStrides } {
  return { data, strides: broadcastStrides(name, shape, target) };
}

function readPerBatch(name: string, value: unknown, batch: number): Int32Array {
  const { data, shape } = readAnyIntegers(name, value);
  checkShape(name, shape, [batch], '[B]');
  return data;
}

export function readLengths(name: string, value: unknown, batch: number, most: number): Int32Array {
  const lengths = readPerBatch(name, value, batch);
  lengths.forEach((length, b) => readInteger(`${name}[${b}]`, length, 0, most));
  return lengths;
}

export function readOffsets(value: unknown, batch: number): Int32Array {
  if (typeof value === 'number') {
    return new Int32Array(batch).fill(readInteger('causalOffset', value, -farthest, farthest));
  }
  const offsets = readPerBatch('causalOffset', value, batch);
  offsets.forEach((offset, b) => readInteger(`causalOffset[${b}]`, offset, -farthest, farthest));
  return offsets;
}

export function readPerHead(name: string, value: unknown, heads: number): Float32Array {
  const { data, shape } = readAnyFloats(name, value);
  checkShape(name, shape, [heads], '[H]');
  for (let h = 0; h < heads; h++) {
    if (!Number.isFinite(data[h]))
      throw invalidValue(`${name}[${h}]: a finite number wanted, got ${data[h]}`);
  }
  return data;
}

export function readWeightHeads(value: unknown, heads: number): Int32Array | 'all' | undefined {
  if (value === false) return undefined;
  if (value === true) return 'all';
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidType(`returnWeights: true, false or { heads } wanted, got ${describe(value)}`);
  }
  const { heads: list } = readOptions('returnWeights', value, returnWeightsNames);
  const { data, shape } = readAnyIntegers('returnWeights.heads', list);
  if (shape.length !== 1)
    throw invalidShape(`returnWeights.heads: a flat array wanted, got shape [${shape}]`);
  data.forEach((head, i) => readInteger(`returnWeights.heads[${i}]`, head, 0, heads - 1));
  data.forEach((head, i) => {
    if (data.indexOf(head) < i)
      throw invalidValue(`returnWeights.heads: each head once wanted, got ${head} twice`);
  });
  return data;
}
/** The caller's array for the output, if one is given. */
export function readOut(value: unknown, length: number): Float32Array | undefined {
  if (value === undefined) return undefined;
  if (!isFloat32Array(value))
    throw invalidType(`out: a Float32Array wanted, got ${describe(value)}`);
  checkAttached('out', value);
  if (lengthOf(value) !== length) {
    throw invalidShape(
      `out: a Float32Array of ${length} elements wanted, got one of ${lengthOf(value)}`,
    );
  }
  return value;
}
