// Validation: engine.attention's arguments to an AttentionRequest. Start reading at readAttention.
import type { TensorLike } from '../tensor-like.js';
import type { IntegersLike } from '../tensor-types.js';
import { invalidShape, outOfMemory } from '../errors.js';
import type { AttentionRequest } from '../request.js';
import { maskingOptionNames, readAttentionSettings } from '../options/settings.js';
import { readOut } from '../options/readers.js';
import { readSignal } from './options.js';
import type { MaskingOptions } from '../options/masking-options.js';
import { readFinite, readInteger, readOptions } from './options.js';
import { readPacked } from './packed.js';
import { readLayout, viewOf, type View } from './views.js';
import { maxSize, product, readTensor, type Shaped } from './shapes.js';

/** Options of `engine.attention`. */
export interface AttentionOptions extends MaskingOptions {
  /** What a tensor of rank 4 is: `[B,H,L,D]` ('bhld', default) or `[B,L,H,D]` ('blhd'). Other ranks do not look at it. */
  layout?: 'bhld' | 'blhd' | undefined;
  /** H: needed for tensors of rank 3, `[B,L,H·D]`; for other ranks it must agree with the shape. */
  numHeads?: number | undefined;
  /** G, the heads of k and v, when it differs from H, which must be a multiple of it. */
  numKvHeads?: number | undefined;
  /** Factor on q·k, any finite number. Default 1/√D. */
  scale?: number | undefined;
  /**
   * Packed sequences without padding: q holds all of them one after the other along L, in one batch, and sequence n's rows are
   * `cuSeqlensQ[n]` … `cuSeqlensQ[n + 1] − 1`. Integers `[N + 1]` from 0 to L, never falling; k and v likewise along S by
   * `cuSeqlensK`, both or neither. A query sees its own sequence's keys only; causality, windows and ALiBi count within the
   * sequence, `causalOffset` may be `[N]`. Not together with masks, bias, lengths, weights and scores.
   */
  cuSeqlensQ?: IntegersLike | undefined;
  /** See `cuSeqlensQ`. */
  cuSeqlensK?: IntegersLike | undefined;
}

/** A checked call: the request, where the output goes, and the shapes of the results. */
export interface CheckedCall<R> {
  request: R;
  out: Float32Array | undefined;
  signal: AbortSignal | undefined;
  outputShape: number[];
}

const optionNames = new Set<string>([
  'layout',
  'numHeads',
  'numKvHeads',
  'scale',
  'cuSeqlensQ',
  'cuSeqlensK',
  ...maskingOptionNames,
]);
/** Throws for whatever is wrong; what it returns can be computed. */
export function readAttention(
  qValue: TensorLike,
  kValue: TensorLike,
  vValue: TensorLike,
  optionsValue: AttentionOptions | undefined,
): CheckedCall<AttentionRequest> {
  return readTogether(
    readTensor('q', qValue),
    readTensor('k', kValue),
    readTensor('v', vValue),
    optionsValue,
  );
}

/** The same of tensors that have been read. */
export function readTogether(
  q: Shaped<Float32Array>,
  k: Shaped<Float32Array>,
  v: Shaped<Float32Array>,
  optionsValue: AttentionOptions | undefined,
): CheckedCall<AttentionRequest> {
  const options = readOptions('options', optionsValue, optionNames);
  const blhd = readLayout(options.layout);
  const numHeads = readHeads('numHeads', options.numHeads);
  const numKvHeads = readHeads('numKvHeads', options.numKvHeads) ?? numHeads;
  const rank = q.shape.length;
  if (rank < 2 || rank > 4)
    throw invalidShape(`q: a tensor of rank 2, 3 or 4 wanted, got shape [${q.shape}]`);
  checkRank('k', k.shape, q.shape);
  checkRank('v', v.shape, q.shape);
  if (rank === 3 && numHeads === undefined) {
    throw invalidShape(`numHeads: needed for tensors of rank 3, q's shape is [${q.shape}]`);
  }
  const qView = viewOf('q', q.shape, blhd, 'numHeads', numHeads);
  // Rank 4 carries its own number of key/value heads; numHeads does not stand in for it.
  const kvHeads = rank === 4 ? readHeads('numKvHeads', options.numKvHeads) : numKvHeads;
  const kView = viewOf('k', k.shape, blhd, 'numKvHeads', kvHeads);
  const vView = viewOf('v', v.shape, blhd, 'numKvHeads', kvHeads);
  checkTogether(q.shape, qView, k.shape, kView, v.shape, vView);

  const { heads, size: headDim } = qView;
  const { heads: groups } = kView;
  const packed = readPacked(options, qView, kView);
  const { batch, queries, keys } = packed?.sizes ?? {
    batch: qView.batch,
    queries: qView.rows,
    keys: kView.rows,
  };
  const valueDim = vView.size;
  const outputShape = shapeLike(rank, blhd, qView, valueDim);
  if (product(outputShape) > maxSize) throw outOfMemory('attention', product(outputShape) * 4);
  const settings = readAttentionSettings(
    options,
    { batch, heads, queries, keys },
    packed?.settings,
  );
  const request: AttentionRequest = {
    ...settings,
    op: 'attention',
    kvHeads: groups,
    headDim,
    valueDim,
    scale: options.scale === undefined ? defaultScale(headDim) : readFinite('scale', options.scale),
    q: q.data,
    k: k.data,
    v: v.data,
    qStrides: qView.strides,
    kStrides: kView.strides,
    vStrides: vView.strides,
    outStrides: viewOf('output', outputShape, blhd, 'numHeads', heads).strides,
  };
  if (packed !== undefined) {
    for (const strides of ['qStrides', 'kStrides', 'vStrides', 'outStrides'] as const)
      request[strides] = [0, request[strides][1], request[strides][2]];
  }
  return {
    request,
    out: readOut(options.out, product(outputShape)),
    signal: readSignal('signal', options.signal),
    outputShape,
  };
}

function checkRank(name: string, shape: readonly number[], qShape: readonly number[]): void {
  if (shape.length !== qShape.length) {
    throw invalidShape(
      `${name}: rank ${qShape.length} like q's [${qShape}] wanted, got shape [${shape}]`,
    );
  }
}

// With no elements every score is 0 whatever the scale.
export function defaultScale(headDim: number): number {
  return headDim === 0 ? 1 : 1 / Math.sqrt(headDim);
}

function readHeads(name: string, value: unknown): number | undefined {
  return value === undefined ? undefined : readInteger(name, value, 1, maxSize);
}

function checkTogether(
  qShape: readonly number[],
  q: View,
  kShape: readonly number[],
  k: View,
  vShape: readonly number[],
  v: View,
): void {
  if (k.batch !== q.batch)
    throw invalidShape(`k: batch ${q.batch} like q's [${qShape}] wanted, got shape [${kShape}]`);
  if (v.batch !== q.batch)
    throw invalidShape(`v: batch ${q.batch} like q's [${qShape}] wanted, got shape [${vShape}]`);
  if (v.rows !== k.rows)
    throw invalidShape(`v: ${k.rows} rows like k's [${kShape}] wanted, got shape [${vShape}]`);
  if (v.heads !== k.heads)
    throw invalidShape(`v: ${k.heads} heads like k's [${kShape}] wanted, got shape [${vShape}]`);
  if (k.heads === 0 || q.heads % k.heads !== 0) {
    throw invalidShape(
      `k: the number of query heads must be a multiple of that of key/value heads, got ${q.heads} and ${k.heads}`,
    );
  }
  if (k.size !== q.size) {
    throw invalidShape(
      `k: head size ${q.size} like q's [${qShape}] wanted, got ${k.size} from shape [${kShape}]`,
    );
  }
}

function shapeLike(rank: number, blhd: boolean, q: View, valueDim: number): number[] {
  if (rank === 2) return [q.rows, valueDim];
  if (rank === 3) return [q.batch, q.rows, q.heads * valueDim];
  return blhd ? [q.batch, q.rows, q.heads, valueDim] : [q.batch, q.heads, q.rows, valueDim];
}
