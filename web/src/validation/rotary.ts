// Validation: rotary embeddings: what the embedding itself, the cache and their scaling rules take, to plain numbers.
import type { TensorLike } from '../tensor-like.js';
import type { FloatsLike, IntegersLike } from '../tensor-types.js';
import { invalidShape, invalidType, invalidValue, outOfMemory } from '../errors.js';
import type { RotaryRequest, RotaryScaling, RotarySettings } from '../request.js';
import { type CheckedCall } from './attention.js';
import { readLayout, viewOf } from './views.js';
import { readOut } from '../options/readers.js';
import { readSignal } from './options.js';
import { readBoolean, readChoice, readFinite, readInteger, readOptions } from './options.js';
import {
  checkShape,
  maxSize,
  product,
  readAnyFloats,
  readAnyIntegers,
  readTensor,
} from './shapes.js';

/**
 * How the frequencies f_i = base^(−2i/dim) change for texts longer than a model was trained on. `factor` is how many times
 * longer; `originalLength` the number of positions in training.
 *
 * - `linear`: f/factor (Chen et al., "Extending Context Window of Large Language Models via Positional Interpolation", 2023,
 *   arXiv 2306.15595).
 * - `ntk`: base·factor^(dim/(dim−2)) in the place of base, so that the fastest pair stays and the slowest is interpolated
 *   (bloc97, "NTK-aware scaled RoPE", 2023).
 * - `yarn`: f/factor for pairs of fewer than `betaSlow` (1) turns in `originalLength`, f for those of more than `betaFast` (32),
 *   in between a ramp over the pair's index whose ends are rounded to whole pairs; sines and cosines times `attentionFactor`
 *   (0.1·ln(factor) + 1 for a factor above 1, else 1) (Peng et al., "YaRN", 2023, arXiv 2309.00071; the ramp as in the authors'
 *   code, which models were trained with).
 * - `llama3`: f/factor below `lowFreqFactor` (1) turns in `originalLength`, f above `highFreqFactor` (4), in between weighted by
 *   the turns (Meta, "The Llama 3 Herd of Models", 2024, arXiv 2407.21783, and the reference code of Llama 3.1).
 * - `dynamic`: as `ntk`, with factor·n/originalLength − (factor − 1) in the place of factor, n being the text's length so far, at
 *   least originalLength (u/emozilla, "Dynamically scaled RoPE", 2023).
 * - `longrope`: f/shortFactor[i] in a text of up to `originalLength` tokens, f/longFactor[i] in a longer one; one factor for each
 *   of the dim/2 pairs. Sines and cosines times `attentionFactor` (√(1 + ln(factor)/ln(originalLength)) for a factor above 1,
 *   else 1; `factor` is max_position_embeddings over original_max_position_embeddings and serves for nothing else) (Ding et al.,
 *   "LongRoPE", 2024, arXiv 2402.13753, as in Phi-3).
 *
 * All are as in Hugging Face's transformers (`rope_scaling`; `originalLength` is original_max_position_embeddings). With
 * `dynamic` and `longrope` a text is as long as the largest position of the call, plus 1, in each row of the batch. Keys that a
 * cache has keep the frequencies they came with, as there.
 */
export type RopeScaling =
  | { type: 'linear' | 'ntk'; factor: number }
  | {
      type: 'yarn';
      factor: number;
      originalLength: number;
      betaFast?: number | undefined;
      betaSlow?: number | undefined;
      attentionFactor?: number | undefined;
    }
  | {
      type: 'llama3';
      factor: number;
      originalLength: number;
      lowFreqFactor?: number | undefined;
      highFreqFactor?: number | undefined;
    }
  | { type: 'dynamic'; factor: number; originalLength: number }
  | {
      type: 'longrope';
      shortFactor: FloatsLike;
      longFactor: FloatsLike;
      originalLength: number;
      /** This or `attentionFactor`. */
      factor?: number | undefined;
      attentionFactor?: number | undefined;
    };

/** What a rotary embedding is made of. */
export interface RopeOptions {
  /** Default 10000. */
  base?: number | undefined;
  /** How many of a head's first elements turn, an even number; the tail is left alone. Default all. */
  dim?: number | undefined;
  /** Pairs are (x[2i], x[2i+1]) (true), or (x[i], x[i+dim/2]) (false, the default). */
  interleaved?: boolean | undefined;
  /** Default none. */
  scaling?: RopeScaling | undefined;
  /**
   * Cosines and sines `[P,dim/2]` by position, both, in the place of `base` and `scaling`; `dim` is then by default twice their
   * width. They are used as they are. A position outside 0…P−1 is an `INVALID_VALUE`.
   */
  cos?: FloatsLike | undefined;
  sin?: FloatsLike | undefined;
}

/** Options of `engine.rotaryEmbedding`. */
export interface RotaryOptions extends RopeOptions {
  /** What a tensor of rank 4 is: `[B,H,L,D]` ('bhld', default) or `[B,L,H,D]` ('blhd'). */
  layout?: 'bhld' | 'blhd' | undefined;
  /** H: needed for tensors of rank 3, `[B,L,H·D]`. */
  numHeads?: number | undefined;
  /** The position of the first row; the others follow. Default 0. */
  offset?: number | undefined;
  /** The position of each row instead, integers `[L]` or `[B,L]`. */
  positions?: IntegersLike | undefined;
  /** As {@link RopeOptions.cos}; or `[B,L,dim/2]`, one for each row, without `positions`. */
  cos?: FloatsLike | undefined;
  sin?: FloatsLike | undefined;
  /** Where to write the result: a `Float32Array` of just its length. */
  out?: Float32Array | undefined;
  signal?: AbortSignal | undefined;
}

const ropeNames = ['base', 'dim', 'interleaved', 'scaling', 'cos', 'sin'] as const;
const ropeNameSet = new Set<string>(ropeNames);
const optionNames = new Set<string>([
  ...ropeNames,
  'layout',
  'numHeads',
  'offset',
  'positions',
  'out',
  'signal',
]);
const rules = ['linear', 'ntk', 'yarn', 'llama3', 'dynamic', 'longrope'] as const;
const scalingNames: Record<(typeof rules)[number], ReadonlySet<string>> = {
  linear: new Set(['type', 'factor']),
  ntk: new Set(['type', 'factor']),
  yarn: new Set(['type', 'factor', 'originalLength', 'betaFast', 'betaSlow', 'attentionFactor']),
  llama3: new Set(['type', 'factor', 'originalLength', 'lowFreqFactor', 'highFreqFactor']),
  dynamic: new Set(['type', 'factor', 'originalLength']),
  longrope: new Set([
    'type',
    'factor',
    'originalLength',
    'shortFactor',
    'longFactor',
    'attentionFactor',
  ]),
};

// Far beyond any text, and sums of two still fit 32 bits.
const farthest = 2 ** 30;

/** `rope` of the cache, the layer and the Transformer. `name` is put before the fields' names. */
export function readRope(name: string, value: unknown, headDim: number): RotarySettings {
  const options = readOptions(name, value, ropeNameSet);
  const settings = readSettings(`${name}.`, options, headDim, readTables(`${name}.`, options));
  // What is kept is a copy, whatever becomes of the caller's array, and of no more than the array.
  const { tables, scaling } = settings;
  if (tables !== undefined) {
    tables.cos = new Float32Array(tables.cos);
    tables.sin = new Float32Array(tables.sin);
  }
  if (scaling?.shortFactors !== undefined && scaling.longFactors !== undefined) {
    scaling.shortFactors = new Float32Array(scaling.shortFactors);
    scaling.longFactors = new Float32Array(scaling.longFactors);
  }
  return settings;
}

function readSettings(
  prefix: string,
  options: Record<string, unknown>,
  headDim: number,
  tables: Tables | undefined,
): RotarySettings {
  const byDefault = tables === undefined ? headDim : 2 * tables.width;
  if (options.dim === undefined && (byDefault < 2 || byDefault % 2 !== 0)) {
    throw invalidShape(`${prefix}dim: heads of an even size wanted, got ${byDefault}`);
  }
  const dim = readInteger(`${prefix}dim`, options.dim ?? byDefault, 2, headDim);
  if (dim % 2 !== 0) throw invalidValue(`${prefix}dim: an even number wanted, got ${dim}`);
  if (tables !== undefined && dim !== 2 * tables.width) {
    throw invalidShape(`${prefix}cos: a width of dim / 2 = ${dim / 2} wanted, got ${tables.width}`);
  }
  const base = options.base === undefined ? 10000 : readFinite(`${prefix}base`, options.base);
  if (base <= 0) throw invalidValue(`${prefix}base: a number above 0 wanted, got ${base}`);
  const settings: RotarySettings = {
    base,
    dim,
    interleaved: readBoolean(`${prefix}interleaved`, options.interleaved, false),
  };
  if (tables !== undefined) {
    const { cos, sin, rows } = tables;
    settings.tables = { cos, sin, rows };
  }
  if (options.scaling !== undefined) {
    if (base <= 1) throw invalidValue(`${prefix}base: above 1 wanted with scaling, got ${base}`);
    settings.scaling = readScaling(`${prefix}scaling`, options.scaling, dim);
  }
  return settings;
}

function readScaling(name: string, value: unknown, dim: number): RotaryScaling {
  const type = readChoice(`${name}.type`, (value as { type?: unknown } | null)?.type, rules);
  const options = readOptions(name, value, scalingNames[type]);
  const positive = (field: string, byDefault?: number): number => {
    const number = readFinite(`${name}.${field}`, options[field] ?? byDefault);
    if (number <= 0) throw invalidValue(`${name}.${field}: a number above 0 wanted, got ${number}`);
    return number;
  };
  const scaling: RotaryScaling = {
    rule: rules.indexOf(type) + 1,
    // longrope's factor says only how large the attention factor is, so that one of them is enough.
    factor: positive(
      'factor',
      type === 'longrope' && options.attentionFactor !== undefined ? 1 : undefined,
    ),
    originalLength: type === 'linear' || type === 'ntk' ? 0 : positive('originalLength'),
    low: 1,
    high: 4,
    magnitude: 1,
  };
  if (type === 'yarn' || type === 'llama3') {
    const [low, high] =
      type === 'yarn' ? ['betaSlow', 'betaFast'] : ['lowFreqFactor', 'highFreqFactor'];
    scaling.low = positive(low as string, 1);
    scaling.high = positive(high as string, type === 'yarn' ? 32 : 4);
    if (scaling.high <= scaling.low) {
      throw invalidValue(
        `${name}.${high}: a number above ${low} = ${scaling.low} wanted, got ${scaling.high}`,
      );
    }
  }
  if (type === 'yarn') {
    const { factor } = scaling;
    scaling.magnitude = positive('attentionFactor', factor > 1 ? 0.1 * Math.log(factor) + 1 : 1);
  }
  if (type === 'longrope') {
    const { factor, originalLength } = scaling;
    scaling.shortFactors = readFactors(`${name}.shortFactor`, options.shortFactor, dim / 2);
    scaling.longFactors = readFactors(`${name}.longFactor`, options.longFactor, dim / 2);
    const grown = factor > 1 ? Math.sqrt(1 + Math.log(factor) / Math.log(originalLength)) : 1;
    scaling.magnitude = positive('attentionFactor', grown);
  }
  return scaling;
}

/** One factor a pair. */
function readFactors(name: string, value: unknown, pairs: number): Float32Array {
  const { data, shape } = readAnyFloats(name, value);
  checkShape(name, shape, [pairs], '[dim/2]');
  data.forEach((factor, i) => {
    if (!(factor > 0 && factor < Infinity))
      throw invalidValue(`${name}[${i}]: a finite number above 0 wanted, got ${factor}`);
  });
  return data;
}

export function readRotary(
  xValue: TensorLike,
  optionsValue: RotaryOptions | undefined,
): CheckedCall<RotaryRequest> {
  const x = readTensor('x', xValue);
  const options = readOptions('options', optionsValue, optionNames);
  const rank = x.shape.length;
  if (rank < 2 || rank > 4)
    throw invalidShape(`x: a tensor of rank 2, 3 or 4 wanted, got shape [${x.shape}]`);
  const numHeads =
    options.numHeads === undefined
      ? undefined
      : readInteger('numHeads', options.numHeads, 1, maxSize);
  if (rank === 3 && numHeads === undefined)
    throw invalidShape(`numHeads: needed for tensors of rank 3, x's shape is [${x.shape}]`);
  const view = viewOf('x', x.shape, readLayout(options.layout), 'numHeads', numHeads);
  const { batch, rows } = view;
  if (product(x.shape) > maxSize) throw outOfMemory('rotaryEmbedding', product(x.shape) * 4);
  const tables = readTables('', options, { batch, rows });
  const settings = readSettings('', options, view.size, tables);
  const request: RotaryRequest = {
    op: 'rotaryEmbedding',
    ...settings,
    batch,
    heads: view.heads,
    rows,
    size: view.size,
    x: x.data,
    strides: view.strides,
    offset:
      options.offset === undefined ? 0 : readInteger('offset', options.offset, -farthest, farthest),
  };
  if (options.positions !== undefined) {
    if (options.offset !== undefined)
      throw invalidValue('offset: not together with positions, which say where each row stands');
    request.positions = readPositions(options.positions, batch, rows);
  }
  if (tables !== undefined) {
    if (tables.byRow) {
      if (options.positions !== undefined || options.offset !== undefined) {
        throw invalidValue('cos: tables [P,dim/2] wanted with positions or offset, got one a row');
      }
      request.positions = {
        data: Int32Array.from({ length: batch * rows }, (_, i) => i),
        batchStride: rows,
      };
    }
    checkReach(request, tables.rows);
  }
  return {
    request,
    out: readOut(options.out, product(x.shape)),
    signal: readSignal('signal', options.signal),
    outputShape: x.shape,
  };
}

/** Positions of rows, `[L]` or `[B,L]`. */
export function readPositions(
  value: unknown,
  batch: number,
  rows: number,
): NonNullable<RotaryRequest['positions']> {
  const { data, shape } = readAnyIntegers('positions', value);
  if (shape.length === 2) checkShape('positions', shape, [batch, rows], '[B,L]');
  else checkShape('positions', shape, [rows], '[L]');
  data.forEach((position, i) => readInteger(`positions[${i}]`, position, -farthest, farthest));
  return { data, batchStride: shape.length === 2 ? rows : 0 };
}

type Tables = NonNullable<RotarySettings['tables']> & { width: number; byRow: boolean };

/** `call`: a call's sizes, where tables may also be its rows' own. */
function readTables(
  prefix: string,
  options: Record<string, unknown>,
  call?: { batch: number; rows: number },
): Tables | undefined {
  if (options.cos === undefined && options.sin === undefined) return undefined;
  if (options.cos === undefined || options.sin === undefined) {
    const name = options.cos === undefined ? 'cos' : 'sin';
    throw invalidType(`${prefix}${name}: wanted with the other table`);
  }
  for (const name of ['base', 'scaling']) {
    if (options[name] !== undefined)
      throw invalidValue(`${prefix}${name}: not together with cos and sin, which say it all`);
  }
  const cos = readAnyFloats(`${prefix}cos`, options.cos);
  const sin = readAnyFloats(`${prefix}sin`, options.sin);
  checkShape(`${prefix}sin`, sin.shape, cos.shape, "cos's");
  const byRow = call !== undefined && cos.shape.length === 3;
  const width = cos.shape[cos.shape.length - 1] as number;
  if (byRow) {
    checkShape('cos', cos.shape, [call.batch, call.rows, width], '[B,L,dim/2]');
  } else if (cos.shape.length !== 2) {
    const wanted = call === undefined ? '[P,dim/2]' : '[P,dim/2] or [B,L,dim/2]';
    throw invalidShape(`${prefix}cos: ${wanted} wanted, got shape [${cos.shape}]`);
  }
  const rows = byRow ? call.batch * call.rows : (cos.shape[0] as number);
  return { cos: cos.data, sin: sin.data, rows, width, byRow };
}

function checkReach({ positions, offset, rows }: RotaryRequest, tableRows: number): void {
  const ends =
    positions === undefined ? (rows > 0 ? [offset, offset + rows - 1] : []) : positions.data;
  for (const position of ends) checkInTables(position, tableRows);
}

export function checkInTables(position: number, tableRows: number): void {
  if (position >= 0 && position < tableRows) return;
  throw invalidValue(`positions: within the tables' 0 … ${tableRows - 1} wanted, got ${position}`);
}
