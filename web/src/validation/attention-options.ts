// Validation: the options that attention and the layer share, once the sizes are known: options to AttentionSettings.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { AttentionSettings, BroadcastStrides } from '../request.js';
import { isBitMask, readBitMask, readBlockMask } from './sparse-masks.js';
import type {
  BitMask,
  BlockMask,
  BooleansLike,
  FloatsLike,
  IntegersLike,
} from '../tensor-types.js';
import { describe, isFloat32Array } from './arrays.js';
import { checkAttached, lengthOf } from './fixed.js';
import {
  readBoolean,
  readChoice,
  readFinite,
  readInteger,
  readOptions,
  readSeed,
  readSignal,
} from './options.js';
import {
  broadcastStrides,
  checkShape,
  readAnyBooleans,
  readAnyFloats,
  readAnyIntegers,
  type Shaped,
} from './shapes.js';

/** The stage at which scores are returned. */
export type ScoreStage = 'raw' | 'softcapped' | 'masked';

/** Options that `engine.attention` and a layer's `forward` share. */
export interface MaskingOptions {
  /** c > 0: score ← c·tanh(score/c), before bias and mask. 0 or undefined: none. */
  softcap?: number | undefined;
  /** Floats added to the scores, broadcast right-aligned to `[B,H,L,S]`; never scaled; −Infinity hides, a finite value hides nothing. */
  bias?: FloatsLike | undefined;
  /** Booleans, **true = may be attended to**, broadcast right-aligned to `[B,H,L,S]`: rank 2 is `[L,S]`, rank 3 `[H,L,S]`. */
  mask?: BooleansLike | BitMask | undefined;
  /** Blocks of keys that blocks of queries may see; the rest is skipped. Together with the other masks, a key must pass all. */
  blockMask?: BlockMask | undefined;
  /** Booleans `[B,S]`, true = a real token. */
  keyPaddingMask?: BooleansLike | undefined;
  /** Integers `[B]`, 0…S: how many keys are valid. Default S. */
  kvLengths?: IntegersLike | undefined;
  /** Integers `[B]`, 0…L: how many queries are valid; rows past the end come out 0. Default L. */
  qLengths?: IntegersLike | undefined;
  /** Key j is visible to query i iff j ≤ i + `causalOffset`. Default false. */
  causal?: boolean | undefined;
  /** An integer, or integers `[B]`. Default `kvLength − qLength`: the last query sees the last key; 0 aligns top left. */
  causalOffset?: number | IntegersLike | undefined;
  /** `[left, right]` keys around position i + offset, which is always inside itself; Infinity = open. Default open. */
  window?: readonly [left: number, right: number] | undefined;
  /** `[H]`: adds −slope·|i + offset − j| to the scores. */
  alibiSlopes?: FloatsLike | undefined;
  /** `[H]`: one more logit a head in the softmax's denominator, with no value. */
  sinks?: FloatsLike | undefined;
  /** Training only: drops weights at `rate` 0…1 and scales kept ones by 1/(1−rate). The same `seed` drops the same. */
  dropout?: { rate: number; seed?: number | undefined } | undefined;
  /** true, or the heads wanted: weights `[B,H,L,S]` after the softmax, before dropout. Default false. */
  returnWeights?: boolean | { heads: readonly number[] } | undefined;
  /** The scores `[B,H,L,S]` at a stage: scaled, then softcapped, then biased and masked (−Infinity where hidden). */
  returnScores?: ScoreStage | undefined;
  /** The natural log-sum-exp of the scores, `[B,H,L]`; −Infinity for a row without a visible key. Default false. */
  returnLogSumExp?: boolean | undefined;
  /** Where to write the output: a `Float32Array` of just its length, which also becomes the tensor's `data`. */
  out?: Float32Array | undefined;
  /** Leave the results on the GPU, as `GpuTensor`s. Needs an engine with a GPU; `out` cannot be given with it. Default false. */
  resident?: boolean | undefined;
  /** Aborts the call, noticed within 100 ms of work; the call rejects with an `AbortError`. */
  signal?: AbortSignal | undefined;
}

export const maskingOptionNames = [
  'softcap',
  'bias',
  'mask',
  'blockMask',
  'keyPaddingMask',
  'kvLengths',
  'qLengths',
  'causal',
  'causalOffset',
  'window',
  'alibiSlopes',
  'sinks',
  'dropout',
  'returnWeights',
  'returnScores',
  'returnLogSumExp',
  'out',
  'resident',
  'signal',
] as const;

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

export function readAttentionSettings(
  options: Record<string, unknown>,
  sizes: CallSizes,
): AttentionSettings {
  const { batch, heads, queries, keys } = sizes;
  const target: [number, number, number, number] = [batch, heads, queries, keys];
  const { bias, mask, blockMask, keyPaddingMask, kvLengths, qLengths } = options;
  const { causalOffset, alibiSlopes, sinks, dropout } = options;
  // Every field each time, in one order: requests are then alike to the JavaScript engine, whatever the options, and quick to
  // make and to read.
  return {
    batch,
    heads,
    queries,
    keys,
    softcap: readSoftcap(options.softcap),
    causal: readBoolean('causal', options.causal, false),
    window: readWindow(options.window),
    scoreStage: readScoreStage(options.returnScores),
    logSumExp: readBoolean('returnLogSumExp', options.returnLogSumExp, false),
    bias: bias === undefined ? bias : broadcast('bias', readAnyFloats('bias', bias), target),
    mask: mask === undefined ? mask : readMask(mask, target),
    blockMask: blockMask === undefined ? blockMask : readBlockMask(blockMask, queries, keys),
    keyPaddingMask:
      keyPaddingMask === undefined
        ? keyPaddingMask
        : readKeyPaddingMask(keyPaddingMask, batch, keys),
    kvLengths:
      kvLengths === undefined ? kvLengths : readLengths('kvLengths', kvLengths, batch, keys),
    qLengths: qLengths === undefined ? qLengths : readLengths('qLengths', qLengths, batch, queries),
    causalOffsets: causalOffset === undefined ? causalOffset : readOffsets(causalOffset, batch),
    alibiSlopes:
      alibiSlopes === undefined ? alibiSlopes : readPerHead('alibiSlopes', alibiSlopes, heads),
    sinks: sinks === undefined ? sinks : readPerHead('sinks', sinks, heads),
    dropout: dropout === undefined ? dropout : readDropout(dropout),
    resident: readResident(options),
    weightHeads: readWeightHeads(options.returnWeights, heads),
    packed: undefined,
  };
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

export { readSignal };

function readSoftcap(value: unknown): number {
  if (value === undefined) return 0;
  const cap = readFinite('softcap', value);
  // A cap that float32 rounds to 0 would silently mean 'none'.
  if (cap < 0 || (cap > 0 && Math.fround(cap) === 0)) {
    throw invalidValue(`softcap: a number above 0 wanted (0: none), got ${cap}`);
  }
  return cap;
}

function readWindow(value: unknown): [number, number] {
  if (value === undefined) return [-1, -1];
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

function readScoreStage(value: unknown): number {
  if (value === undefined) return 0;
  return scoreStages[readChoice('returnScores', value, scoreStageNames)];
}

function readMask(
  value: unknown,
  target: [number, number, number, number],
): NonNullable<AttentionSettings['mask']> {
  if (isBitMask(value)) return readBitMask(value, target);
  return broadcast('mask', readAnyBooleans('mask', value), target);
}

function readKeyPaddingMask(value: unknown, batch: number, keys: number): Uint8Array {
  const { data, shape } = readAnyBooleans('keyPaddingMask', value);
  const flat = batch === 1 && shape.length === 1 && shape[0] === keys; // [S] for one batch
  if (!flat) checkShape('keyPaddingMask', shape, [batch, keys], '[B,S]');
  return data;
}

function readDropout(value: unknown): AttentionSettings['dropout'] {
  const { rate, seed } = readOptions('dropout', value, dropoutNames);
  const fraction = readFinite('dropout.rate', rate);
  if (fraction < 0 || fraction > 1)
    throw invalidValue(`dropout.rate: a number from 0 to 1 wanted, got ${fraction}`);
  const words = readSeed('dropout.seed', seed);
  return fraction > 0 ? { rate: fraction, seed: words } : undefined;
}

function readResident({ resident, out }: Record<string, unknown>): boolean {
  if (!readBoolean('resident', resident, false)) return false;
  if (out !== undefined)
    throw invalidValue(
      'out: nothing wanted, because with resident: true the output stays on the GPU',
    );
  return true;
}

export function broadcast<A>(
  name: string,
  { data, shape }: Shaped<A>,
  target: [number, number, number, number],
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

function readOffsets(value: unknown, batch: number): Int32Array {
  if (typeof value === 'number') {
    return new Int32Array(batch).fill(readInteger('causalOffset', value, -farthest, farthest));
  }
  const offsets = readPerBatch('causalOffset', value, batch);
  offsets.forEach((offset, b) => readInteger(`causalOffset[${b}]`, offset, -farthest, farthest));
  return offsets;
}

function readPerHead(name: string, value: unknown, heads: number): Float32Array {
  const { data, shape } = readAnyFloats(name, value);
  checkShape(name, shape, [heads], '[H]');
  for (let h = 0; h < heads; h++) {
    if (!Number.isFinite(data[h]))
      throw invalidValue(`${name}[${h}]: a finite number wanted, got ${data[h]}`);
  }
  return data;
}

function readWeightHeads(value: unknown, heads: number): Int32Array | 'all' | undefined {
  if (value === undefined || value === false) return undefined;
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
