// Validation: a cache's configuration, and its calls to requests.
import type { TensorLike } from '../tensor-like.js';
import type { IntegersLike } from '../tensor-types.js';
import { invalidShape, invalidType, invalidValue, outOfMemory } from '../errors.js';
import type { CacheConfig, CacheStepRequest } from '../request.js';
import { defaultScale, type CheckedCall } from './attention.js';
import { readLayout, viewOf, type View } from './views.js';
import { checkBeside, maskingOptionNames, readAttentionSettings } from '../options/settings.js';
import { readLengths, readOut } from '../options/readers.js';
import { readSignal } from './options.js';
import type { MaskingOptions } from '../options/masking-options.js';
import { describe } from './arrays.js';
import { readBoolean, readChoice, readFinite, readInteger, readOptions } from './options.js';
import { checkInTables, readPositions, readRope, type RopeOptions } from './rotary.js';
import { largest, maxSize, product, readAnyIntegers, readTensor } from './shapes.js';

/** What a cache's numbers are kept as. */
export type CacheType = 'f32' | 'f16' | 'int8';

/** The configuration of `engine.createKVCache`. */
export interface KVCacheConfig {
  /** B. Default 1. */
  batch?: number | undefined;
  /** G. */
  numKvHeads: number;
  /** D. */
  headDim: number;
  /** Dv. Default `headDim`. */
  valueHeadDim?: number | undefined;
  /**
   * How many tokens each row holds. With a `window` the slots of sinks and ring together, at least `sinkTokens + window`; by
   * default there is room for up to 512 tokens more, so that a prompt goes in pieces of that many.
   */
  capacity?: number | undefined;
  /**
   * 'f32' (default); 'f16', half the memory: each number is off by at most 2⁻¹¹ of itself (beyond 65504 it is infinite); 'int8',
   * a quarter and one float for each head's row of a token: numbers are off by at most 1/254 of the row's largest.
   */
  dtype?: CacheType | undefined;
  /**
   * How many keys a query sees, its own among them (attention's `window: [window − 1, 0]`): the cache is then a ring in which new
   * tokens take the places of those that no query will see again, and has no end. Default: none, all keys.
   */
  window?: number | undefined;
  /** With a window: the first tokens, which are kept and seen for ever (Xiao et al., "StreamingLLM", 2023). Default 0. */
  sinkTokens?: number | undefined;
  /**
   * How far a query is from the sink tokens, with rope: 'text' (default), by positions in the text; 'cache', by places in the cache,
   * as StreamingLLM has it: against sink tokens a query at position p is turned as at min(p, sinkTokens + window − 1). Without
   * `alibiSlopes` and `dropout` then.
   */
  sinkPositions?: 'text' | 'cache' | undefined;
  /**
   * Turns queries and keys by their positions, which follow that of the row's last token (from 0) unless `positions` says otherwise.
   * Keys are kept turned, with the frequencies that their call had. Default: none.
   */
  rope?: RopeOptions | undefined;
  /**
   * Whether keys and values lie on the GPU, where steps then run: for dtype 'f32' without a window. true: there or an error
   * (`UNSUPPORTED`); false: in the heap. Default: there with backend 'webgpu' when that can be, else in the heap. A cache on the
   * GPU has no synchronous calls, and ends when its device is lost (`DEVICE_LOST`).
   */
  resident?: boolean | undefined;
}

/** Options of a cache's `append`. */
export interface AppendOptions {
  /** What tensors of rank 4 are: `[B,G,L,D]` ('bhld', default) or `[B,L,G,D]` ('blhd'). */
  layout?: 'bhld' | 'blhd' | undefined;
  /** Integers `[B]`, 0…L: how many of the L tokens are each row's. Default L. */
  lengths?: IntegersLike | undefined;
  /**
   * Integers `[L]` or `[B,L]`: where rope is to turn each token, as in a tree of drafts, whose siblings share one. They say nothing
   * of who sees whom. Default: those that follow the position of the row's last token.
   */
  positions?: IntegersLike | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Options of a cache's `attend`: attention's, but that lengths and offsets are the cache's own. S, for masks and weights, is the
 * longest row after the call. Causality, windows and ALiBi go by places in the cache, 0 … length − 1. With the cache's `window`
 * there are no masks, biases, weights and scores.
 */
export interface AttendOptions
  extends Omit<MaskingOptions, 'kvLengths' | 'qLengths' | 'causalOffset'>, AppendOptions {
  /** H: needed for q of rank 3, unless it can be told from the cache's head size. */
  numHeads?: number | undefined;
  /** Factor on q·k. Default 1/√D. */
  scale?: number | undefined;
  /**
   * Whether a query sees only its own key and earlier ones. Default true; without new tokens false, but for a cache with a window.
   */
  causal?: boolean | undefined;
}

const configNames = new Set([
  'batch',
  'numKvHeads',
  'headDim',
  'valueHeadDim',
  'capacity',
  'dtype',
  'window',
  'sinkTokens',
  'sinkPositions',
  'rope',
  'resident',
]);
const appendNames = new Set(['layout', 'lengths', 'positions', 'signal']);
const cachesOwn = new Set<string>(['kvLengths', 'qLengths', 'causalOffset']);
const attendNames = new Set<string>([
  ...maskingOptionNames.filter((name) => !cachesOwn.has(name)),
  'layout',
  'lengths',
  'positions',
  'numHeads',
  'scale',
]);
const types = ['f32', 'f16', 'int8'] as const;
const sinkPositions = ['text', 'cache'] as const;
const cellBytes = { f32: 4, f16: 2, int8: 1 } as const;

const mostSize = 2 ** 24;
const mostTokens = 2 ** 30;

export function readCacheConfig(value: KVCacheConfig): CacheConfig {
  if (value === undefined)
    throw invalidType('config: an object with numKvHeads and headDim wanted, got undefined');
  const config = readOptions('config', value, configNames);
  const size = (name: string, byDefault?: number): number =>
    readInteger(name, config[name] ?? byDefault, 1, mostSize);
  const headDim = size('headDim');
  const window =
    config.window === undefined ? 0 : readInteger('window', config.window, 1, mostTokens);
  const sinkTokens =
    config.sinkTokens === undefined
      ? 0
      : readInteger('sinkTokens', config.sinkTokens, 0, mostTokens);
  if (sinkTokens > 0 && window === 0)
    throw invalidValue(`sinkTokens: a window wanted with it, got sinkTokens = ${sinkTokens} alone`);
  const least = sinkTokens + window;
  if (config.capacity === undefined && window === 0)
    throw invalidType('capacity: a number of tokens wanted, got undefined');
  const capacity = readInteger(
    'capacity',
    config.capacity ?? least + Math.min(window, 512),
    Math.max(least, 1),
    mostTokens,
  );
  const resolved: CacheConfig = {
    batch: size('batch', 1),
    kvHeads: size('numKvHeads'),
    headDim,
    valueDim: size('valueHeadDim', headDim),
    capacity,
    cellType:
      config.dtype === undefined ? 0 : types.indexOf(readChoice('dtype', config.dtype, types)),
    window,
    sinkTokens,
    sinkPositions:
      config.sinkPositions === undefined
        ? 0
        : sinkPositions.indexOf(readChoice('sinkPositions', config.sinkPositions, sinkPositions)),
  };
  if (config.resident !== undefined)
    resolved.resident = readBoolean('resident', config.resident, false);
  if (config.rope !== undefined) resolved.rope = readRope('rope', config.rope, headDim);
  if (resolved.sinkPositions !== 0 && (sinkTokens === 0 || resolved.rope === undefined))
    throw invalidValue("sinkPositions: 'cache' only with sinkTokens and rope");
  const { batch, kvHeads, valueDim } = resolved;
  const perRow =
    (headDim + valueDim) * cellBytes[typeOf(resolved)] + (typeOf(resolved) === 'int8' ? 8 : 0);
  const bytes = batch * kvHeads * capacity * perRow;
  if (kvHeads * capacity * Math.max(headDim, valueDim) > maxSize || bytes > 2 ** 32)
    throw outOfMemory('createKVCache', bytes);
  return resolved;
}

export function typeOf(config: CacheConfig): CacheType {
  return types[config.cellType] as CacheType;
}

/** The cache that a call goes to, as its object knows it. */
export interface CacheState {
  cache: number;
  config: CacheConfig;
  /** What all calls so far lead to. */
  lengths: Int32Array;
}

/** `counts`: new tokens of each row. */
export interface CheckedStep extends CheckedCall<CacheStepRequest> {
  counts: Int32Array;
}

export function readAppend(
  state: CacheState,
  kValue: TensorLike,
  vValue: TensorLike,
  optionsValue: AppendOptions | undefined,
): CheckedStep {
  const options = readOptions('options', optionsValue, appendNames);
  const tokens = readTokens(state, kValue, vValue, options);
  const { batch } = state.config;
  return {
    request: {
      ...readAttentionSettings(
        {},
        { batch, heads: 0, queries: tokens.rows, keys: 0 },
        { qLengths: tokens.counts },
      ),
      ...tokens.request,
      op: 'cacheStep',
      scale: 1,
    },
    counts: tokens.counts,
    out: undefined,
    signal: readSignal('signal', options.signal),
    outputShape: [],
  };
}

export function readAttend(
  state: CacheState,
  qValue: TensorLike,
  kValue: TensorLike | undefined,
  vValue: TensorLike | undefined,
  optionsValue: AttendOptions | undefined,
): CheckedStep {
  const { config } = state;
  const { batch, window, headDim } = config;
  const options = readOptions('options', optionsValue, attendNames);
  const q = readTensor('q', qValue);
  const reads = kValue === undefined && vValue === undefined;
  const tokens = reads
    ? undefined
    : readTokens(state, kValue as TensorLike, vValue as TensorLike, options);
  const blhd = readLayout(options.layout);
  const rank = q.shape.length;
  if (tokens !== undefined && rank !== tokens.rank)
    throw invalidShape(`q: rank ${tokens.rank} like k's wanted, got shape [${q.shape}]`);
  if (rank < 2 || rank > 4)
    throw invalidShape(`q: a tensor of rank 2, 3 or 4 wanted, got shape [${q.shape}]`);
  const numHeads =
    options.numHeads === undefined
      ? rank === 3
        ? Math.max(Math.floor((q.shape[2] as number) / headDim), 1)
        : undefined
      : readInteger('numHeads', options.numHeads, 1, maxSize);
  const view = viewOf('q', q.shape, blhd, 'numHeads', numHeads);
  const { heads } = view;
  const rows = tokens?.rows ?? view.rows;
  checkView('q', q.shape, view, { batch, rows, size: headDim });
  if (heads % config.kvHeads !== 0) {
    throw invalidShape(
      `q: a multiple of the cache's ${config.kvHeads} key/value heads wanted, got ${heads} heads`,
    );
  }
  if (window > 0) checkBeside('ring', options);
  if (config.sinkPositions !== 0) {
    for (const name of ['alibiSlopes', 'dropout']) {
      if (options[name] !== undefined)
        throw invalidValue(`${name}: not with a cache that has sinkPositions 'cache'`);
    }
  }
  const causal = readBoolean('causal', options.causal, !reads || window > 0);
  if (!causal && window > 0)
    throw invalidValue('causal: true wanted with a cache that has a window, got false');
  const rowCounts = tokens?.counts ?? readCounts(options, batch, rows);
  const counts = tokens?.counts ?? new Int32Array(batch);
  const keys = largest(state.lengths.map((length, b) => length + (counts[b] as number)));
  const outputShape = shapeLike(rank, blhd, view, config.valueDim);
  if (product(outputShape) > maxSize) throw outOfMemory('attend', product(outputShape) * 4);
  const settings = readAttentionSettings(
    { ...options, causal },
    { batch, heads, queries: rows, keys },
    { qLengths: rowCounts },
  );
  return {
    request: {
      ...settings,
      ...(tokens?.request ?? baseOf(state, options, rows)),
      op: 'cacheStep',
      scale:
        options.scale === undefined ? defaultScale(headDim) : readFinite('scale', options.scale),
      q: q.data,
      qStrides: view.strides,
      outStrides: viewOf('output', outputShape, blhd, 'numHeads', heads).strides,
    },
    counts,
    out: readOut(options.out, product(outputShape)),
    signal: readSignal('signal', options.signal),
    outputShape,
  };
}

function readCounts(options: Record<string, unknown>, batch: number, rows: number): Int32Array {
  return options.lengths === undefined
    ? new Int32Array(batch).fill(rows)
    : readLengths('lengths', options.lengths, batch, rows);
}

type Base = Pick<
  CacheStepRequest,
  'cache' | 'starts' | 'kvHeads' | 'headDim' | 'valueDim' | 'positions'
>;

/** What every step says of its cache, and of its rows' positions. */
function baseOf(
  { cache, config, lengths }: CacheState,
  options: Record<string, unknown>,
  rows: number,
): Base {
  const { batch, kvHeads, headDim, valueDim, rope } = config;
  const base: Base = { cache, starts: lengths.slice(), kvHeads, headDim, valueDim };
  if (options.positions === undefined) return base;
  if (rope === undefined) throw invalidValue('positions: only with a cache that has rope');
  const { data, batchStride } = readPositions(options.positions, batch, rows);
  if (rope.tables !== undefined)
    for (const position of data) checkInTables(position, rope.tables.rows);
  base.positions = new Int32Array(batch * rows);
  for (let b = 0; b < batch; b++)
    base.positions.set(data.subarray(b * batchStride, b * batchStride + rows), b * rows);
  return base;
}

interface Tokens {
  rank: number;
  rows: number;
  counts: Int32Array;
  request: Base & Pick<CacheStepRequest, 'k' | 'v' | 'kStrides' | 'vStrides'>;
}

function readTokens(
  state: CacheState,
  kValue: TensorLike,
  vValue: TensorLike,
  options: Record<string, unknown>,
): Tokens {
  const k = readTensor('k', kValue);
  const v = readTensor('v', vValue);
  const blhd = readLayout(options.layout);
  const rank = k.shape.length;
  if (rank < 2 || rank > 4)
    throw invalidShape(`k: a tensor of rank 2, 3 or 4 wanted, got shape [${k.shape}]`);
  if (v.shape.length !== rank)
    throw invalidShape(`v: rank ${rank} like k's [${k.shape}] wanted, got shape [${v.shape}]`);
  const { config, lengths } = state;
  const { batch, kvHeads, headDim, valueDim, capacity, window } = config;
  const kView = viewOf('k', k.shape, blhd, 'numKvHeads', kvHeads);
  const vView = viewOf('v', v.shape, blhd, 'numKvHeads', kvHeads);
  const { rows } = kView;
  checkView('k', k.shape, kView, { batch, rows, size: headDim });
  checkView('v', v.shape, vView, { batch, rows, size: valueDim });
  const counts = readCounts(options, batch, rows);
  const most = window > 0 ? mostTokens : capacity;
  counts.forEach((count, b) => {
    const length = lengths[b] as number;
    if (length + count > most) {
      throw invalidShape(
        `k: the cache is full: at most ${most - length} tokens wanted for row ${b} ` +
          `(capacity ${most}, length ${length}), got ${count}`,
      );
    }
  });
  return {
    rank,
    rows,
    counts,
    request: {
      ...baseOf(state, options, rows),
      k: k.data,
      v: v.data,
      kStrides: kView.strides,
      vStrides: vView.strides,
    },
  };
}

function checkView(
  name: string,
  shape: readonly number[],
  view: View,
  wanted: { batch: number; rows: number; size: number },
): void {
  const words = { batch: 'a batch of', rows: 'tokens:', size: 'a head size of' } as const;
  for (const axis of ['batch', 'rows', 'size'] as const) {
    if (view[axis] !== wanted[axis]) {
      throw invalidShape(
        `${name}: ${words[axis]} ${wanted[axis]} wanted, got ${view[axis]} from shape [${shape}]`,
      );
    }
  }
}

function shapeLike(rank: number, blhd: boolean, q: View, valueDim: number): number[] {
  if (rank === 2) return [q.rows, valueDim];
  if (rank === 3) return [q.batch, q.rows, q.heads * valueDim];
  return blhd ? [q.batch, q.rows, q.heads, valueDim] : [q.batch, q.heads, q.rows, valueDim];
}

/** `trim`'s argument as the length of each row. */
export function readTrim(state: CacheState, value: unknown): Int32Array {
  const { lengths } = state;
  if (typeof value === 'number') {
    const length = readInteger('length', value, 0, largest(lengths));
    return lengths.map((own) => Math.min(own, length));
  }
  return readPlaces(state, 'length', value, (b) => [0, lengths[b] as number]);
}

/** Which tokens leave each row, and how long the rows are then. */
export interface CheckedDrop {
  begins: Int32Array;
  ends: Int32Array;
  rests: Int32Array;
}

/** `drop`'s arguments; a number means every row, as far as it goes. */
export function readDrop(state: CacheState, begin: unknown, end: unknown): CheckedDrop {
  const { lengths } = state;
  const least = (b: number): number => begins[b] as number;
  const longest = largest(lengths);
  const begins =
    typeof begin === 'number'
      ? lengths.map((own) => Math.min(own, readInteger('begin', begin, 0, longest)))
      : readPlaces(state, 'begin', begin, (b) => [0, lengths[b] as number]);
  const from = typeof begin === 'number' ? begin : 0;
  const ends =
    typeof end === 'number'
      ? lengths.map((own, b) =>
          Math.max(least(b), Math.min(own, readInteger('end', end, from, longest))),
        )
      : readPlaces(state, 'end', end, (b) => [least(b), lengths[b] as number]);
  const rests = lengths.map((own, b) => own - (ends[b] as number) + least(b));
  return { begins, ends, rests };
}

function readPlaces(
  { config }: CacheState,
  name: string,
  value: unknown,
  limits: (b: number) => [least: number, most: number],
): Int32Array {
  if (typeof value !== 'object' || value === null)
    throw invalidType(`${name}: an integer, or one a row, wanted, got ${describe(value)}`);
  const { data, shape } = readAnyIntegers(name, value);
  if (shape.length !== 1 || shape[0] !== config.batch)
    throw invalidShape(`${name}: shape [${config.batch}] ([B]) wanted, got [${shape}]`);
  data.forEach((place, b) => readInteger(`${name}[${b}]`, place, ...limits(b)));
  return data;
}

const forkNames = new Set(['rows']);

/** `fork`'s rows, if given. */
export function readFork({ batch }: CacheConfig, value: unknown): Int32Array | undefined {
  const { rows } = readOptions('options', value, forkNames);
  if (rows === undefined) return undefined;
  const { data, shape } = readAnyIntegers('rows', rows);
  if (shape.length !== 1 || data.length === 0)
    throw invalidShape(`rows: a flat array of rows wanted, got shape [${shape}]`);
  data.forEach((row, i) => readInteger(`rows[${i}]`, row, 0, batch - 1));
  return data;
}
