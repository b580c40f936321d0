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
  /**
   * Cosines and sines `[P,dim/2]` by position, in the place of `base` and `scaling`; or `[B,L,dim/2]`, one for each row, without
   * `positions`. They are used as they are; `dim` is then by default twice their width.
   */
  cos?: FloatsLike | undefined;
  sin?: FloatsLike | undefined;
  /** Where to write the result: a `Float32Array` of just its length. */
  out?: Float32Array | undefined;
  signal?: AbortSignal | undefined;
}

const ropeNames = ['base', 'dim', 'interleaved', 'scaling'] as const;
const ropeNameSet = new Set<string>(ropeNames);
const optionNames = new Set<string>([
  ...ropeNames,
  'layout',
  'numHeads',
  'offset',
  'positions',
  'cos',
  'sin',
  'out',
  'signal',
]);
const rules = ['linear', 'ntk', 'yarn', 'llama3'] as const;
const scalingNames: Record<(typeof rules)[number], ReadonlySet<string>> = {
  linear: new Set(['type', 'factor']),
  ntk: new Set(['type', 'factor']),
  yarn: new Set(['type', 'factor', 'originalLength', 'betaFast', 'betaSlow', 'attentionFactor']),
  llama3: new Set(['type', 'factor', 'originalLength', 'lowFreqFactor', 'highFreqFactor']),
};

// Far beyond any text, and sums of two still fit 32 bits.
const farthest = 2 ** 30;

/** `rope` of the cache, the layer and the Transformer. `name` is put before the fields' names. */
export function readRope(name: string, value: unknown, headDim: number): RotarySettings {
  return readSettings(`${name}.`, readOptions(name, value, ropeNameSet), headDim);
}

function readSettings(
  prefix: string,
  options: Record<string, unknown>,
  headDim: number,
): RotarySettings {
  if (options.dim === undefined && (headDim < 2 || headDim % 2 !== 0)) {
    throw invalidShape(`${prefix}dim: heads of an even size wanted, got ${headDim}`);
  }
  const dim =
    options.dim === undefined ? headDim : readInteger(`${prefix}dim`, options.dim, 2, headDim);
  if (dim % 2 !== 0) throw invalidValue(`${prefix}dim: an even number wanted, got ${dim}`);
  const base = options.base === undefined ? 10000 : readFinite(`${prefix}base`, options.base);
  if (base <= 0) throw invalidValue(`${prefix}base: a number above 0 wanted, got ${base}`);
  const settings: RotarySettings = {
    base,
    dim,
    interleaved: readBoolean(`${prefix}interleaved`, options.interleaved, false),
  };
  if (options.scaling !== undefined) {
    if (base <= 1) throw invalidValue(`${prefix}base: above 1 wanted with scaling, got ${base}`);
    settings.scaling = readScaling(`${prefix}scaling`, options.scaling);
  }
  return settings;
}

function readScaling(name: string, value: unknown): RotaryScaling {
  const type = readChoice(`${name}.type`, (value as { type?: unknown } | null)?.type, rules);
  const options = readOptions(name, value, scalingNames[type]);
  const positive = (field: string, byDefault?: number): number => {
    const number = readFinite(`${name}.${field}`, options[field] ?? byDefault);
    if (number <= 0) throw invalidValue(`${name}.${field}: a number above 0 wanted, got ${number}`);
    return number;
  };
  const scaling: RotaryScaling = {
    rule: rules.indexOf(type) + 1,
    factor: positive('factor'),
    originalLength: 0,
    low: 1,
    high: 4,
    magnitude: 1,
  };
  if (type === 'yarn' || type === 'llama3') {
    const [low, high] =
      type === 'yarn' ? ['betaSlow', 'betaFast'] : ['lowFreqFactor', 'highFreqFactor'];
    scaling.originalLength = positive('originalLength');
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
  return scaling;
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
  const tables = readTables(options, batch, rows);
  const dim = tables !== undefined && options.dim === undefined ? 2 * tables.width : options.dim;
  const settings = readSettings('', { ...options, dim }, view.size);
  if (tables !== undefined && settings.dim !== 2 * tables.width) {
    throw invalidShape(`cos: a width of dim / 2 = ${settings.dim / 2} wanted, got ${tables.width}`);
  }
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
    request.tables = tables;
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

function readPositions(value: unknown, batch: number, rows: number): RotaryRequest['positions'] {
  const { data, shape } = readAnyIntegers('positions', value);
  if (shape.length === 2) checkShape('positions', shape, [batch, rows], '[B,L]');
  else checkShape('positions', shape, [rows], '[L]');
  data.forEach((position, i) => readInteger(`positions[${i}]`, position, -farthest, farthest));
  return { data, batchStride: shape.length === 2 ? rows : 0 };
}

type Tables = NonNullable<RotaryRequest['tables']> & { width: number; byRow: boolean };

function readTables(
  options: Record<string, unknown>,
  batch: number,
  rows: number,
): Tables | undefined {
  if (options.cos === undefined && options.sin === undefined) return undefined;
  if (options.cos === undefined || options.sin === undefined)
    throw invalidType(`${options.cos === undefined ? 'cos' : 'sin'}: wanted with the other table`);
  for (const name of ['base', 'scaling']) {
    if (options[name] !== undefined)
      throw invalidValue(`${name}: not together with cos and sin, which say it all`);
  }
  const cos = readAnyFloats('cos', options.cos);
  const sin = readAnyFloats('sin', options.sin);
  checkShape('sin', sin.shape, cos.shape, "cos's");
  const byRow = cos.shape.length === 3;
  if (byRow) checkShape('cos', cos.shape, [batch, rows, cos.shape[2] as number], '[B,L,dim/2]');
  else if (cos.shape.length !== 2)
    throw invalidShape(`cos: [P,dim/2] or [B,L,dim/2] wanted, got shape [${cos.shape}]`);
  const width = cos.shape[cos.shape.length - 1] as number;
  const tableRows = byRow ? batch * rows : (cos.shape[0] as number);
  return { cos: cos.data, sin: sin.data, rows: tableRows, width, byRow };
}

function checkReach({ positions, offset, rows }: RotaryRequest, tableRows: number): void {
  const ends =
    positions === undefined ? (rows > 0 ? [offset, offset + rows - 1] : []) : positions.data;
  for (const position of ends) {
    if (position < 0 || position >= tableRows) {
      throw invalidValue(
        `positions: within the tables' 0 … ${tableRows - 1} wanted, got ${position}`,
      );
    }
  }
}
