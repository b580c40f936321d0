// WebGPU: the one table of what arrays a call has on the device, with their bytes and the axes along which they get smaller. What is
// too large, and into which pieces a call parts, follows from it. Pure.
import type { Obstacle } from '../backend/backend.js';
import { count, type Piece, type Range } from '../options/cut.js';
import type {
  AttentionSettings,
  CacheConfig,
  LayerConfig,
  LayerForwardRequest,
  LinearRequest,
  MergeRequest,
} from '../request.js';
import type { DeviceLimits } from './plan.js';

export type Axis = keyof Piece;

/** The order in which axes are halved: the last ones have arrays cross to the device more than once. */
export const axes: readonly Axis[] = ['batches', 'heads', 'queries', 'keys'];

/** One array that a kernel is bound to. */
export interface ArrayBytes {
  name: string;
  bytes: number;
  /** Along which it gets smaller. */
  axes: readonly Axis[];
}

export type SplitSizes = AttentionSettings & {
  kvHeads: number;
  headDim: number;
  valueDim: number;
};

const whole = (size: number): Range => ({ first: 0, end: size });

/** All of a call as one piece. */
export function wholeOf({ batch, heads, queries, keys }: AttentionSettings): Piece {
  return {
    batches: whole(batch),
    heads: whole(heads),
    queries: whole(queries),
    keys: whole(keys),
  };
}

/** Key/value heads of a range of query heads. */
export function kvRange({ heads, kvHeads }: SplitSizes, range: Range): Range {
  const group = heads / kvHeads;
  return { first: Math.floor(range.first / group), end: Math.ceil(range.end / group) };
}

/** Of the options: bias, mask (in one array with padding, lengths, slopes and sinks) and the matrix of weights or scores. */
function arraysOfSettings(
  settings: AttentionSettings,
  piece: Piece,
  wantsMatrix = settings.weightHeads !== undefined || settings.scoreStage !== 0,
): ArrayBytes[] {
  const [nb, nh, nq, nk] = axes.map((axis) => count(piece[axis])) as [
    number,
    number,
    number,
    number,
  ];
  const broadcast = (
    name: string,
    strides: readonly number[] | undefined,
    elementBytes: number,
  ): ArrayBytes => {
    const along = axes.filter((_, i) => strides?.[i] !== undefined && strides[i] !== 0);
    const elements = along.reduce((product, axis) => product * count(piece[axis]), 1);
    return { name, bytes: strides === undefined ? 0 : elements * elementBytes, axes: along };
  };
  const mask = broadcast('mask', settings.mask?.strides, 1);
  const padding = settings.keyPaddingMask === undefined ? 0 : nb * nk;
  const small = 64 * (nb + nh);
  // What lies in one array is named after whichever of it is the largest.
  const extras = mask.bytes + padding + small;
  const parts: ArrayBytes[] = [
    mask,
    { name: 'keyPaddingMask', bytes: padding, axes: ['batches', 'keys'] },
    { name: 'lengths, slopes and sinks', bytes: small, axes: ['batches', 'heads'] },
  ];
  const largest = parts.reduce((most, part) => (part.bytes > most.bytes ? part : most));
  return [
    broadcast('bias', settings.bias?.strides, 4),
    { ...largest, bytes: extras },
    {
      name: 'the matrix of weights or scores',
      bytes: wantsMatrix ? nb * nh * nq * nk * 4 : 0,
      axes,
    },
  ];
}

/** Of attention, or of a piece of it. */
export function arraysOfAttention(sizes: SplitSizes, piece: Piece = wholeOf(sizes)): ArrayBytes[] {
  const { headDim, valueDim } = sizes;
  const groups = count(kvRange(sizes, piece.heads));
  const rows = count(piece.batches) * count(piece.heads) * count(piece.queries);
  const keyRows = count(piece.batches) * groups * count(piece.keys);
  const byRows: readonly Axis[] = ['batches', 'heads', 'queries'];
  // A part of a group needs the same keys, so halving heads helps only while there are several groups.
  const byKeys: readonly Axis[] =
    groups > 1 ? ['batches', 'heads', 'keys'] : (['batches', 'keys'] as const);
  return [
    { name: 'q', bytes: rows * headDim * 4, axes: byRows },
    { name: 'k', bytes: keyRows * headDim * 4, axes: byKeys },
    { name: 'v', bytes: keyRows * valueDim * 4, axes: byKeys },
    { name: 'the output', bytes: rows * valueDim * 4, axes: byRows },
    { name: 'the statistics', bytes: rows * 12, axes: byRows },
    ...arraysOfSettings(sizes, piece),
  ];
}

/** Of a layer's call. */
export function arraysOfLayer(config: LayerConfig, request: LayerForwardRequest): ArrayBytes[] {
  const { batch, queries, keys, heads } = request;
  const { embedDim, keyDim, valueDim, kvHeads, headDim, valueHeadDim, outputDim } = config;
  const taps = config.convolution?.kernelSize ?? 1;
  const queryWidth = Math.max(taps * embedDim, heads * Math.max(headDim, valueHeadDim), outputDim);
  const keyWidth = Math.max(
    taps * Math.max(keyDim, valueDim),
    kvHeads * Math.max(headDim, valueHeadDim),
  );
  const byBatch: readonly Axis[] = ['batches'];
  const matrix =
    request.averageWeights || request.weightHeads !== undefined || request.scoreStage !== 0;
  return [
    {
      name: 'one of the layer’s tensors',
      bytes: batch * Math.max(queries * queryWidth, keys * keyWidth) * 4,
      axes: byBatch,
    },
    {
      name: 'one of the layer’s kernels',
      bytes: Math.max(taps * embedDim * heads * headDim, heads * valueHeadDim * outputDim) * 4,
      axes: [],
    },
    ...arraysOfSettings(request, wholeOf(request), matrix),
  ];
}

/** Of a product; `rows` of it at once. */
export function arraysOfLinear({ out, ...request }: LinearRequest, rows: number): ArrayBytes[] {
  const byRows: readonly Axis[] = ['batches'];
  return [
    { name: 'kernel', bytes: request.in * out * 4, axes: [] },
    { name: 'a row', bytes: rows * Math.max(request.in, out) * 4, axes: byRows },
  ];
}

/** Of a merge. */
export function arraysOfMerge({ batch, heads, rows, size }: MergeRequest): ArrayBytes[] {
  return [{ name: 'a part', bytes: batch * heads * rows * size * 4, axes: [] }];
}

/** Of a cache. */
export function arraysOfCache(config: CacheConfig): [keys: ArrayBytes, values: ArrayBytes] {
  const rows = config.batch * config.kvHeads * config.capacity;
  return [
    { name: 'keys', bytes: rows * config.headDim * 4, axes: [] },
    { name: 'values', bytes: rows * config.valueDim * 4, axes: [] },
  ];
}

/** What a call returns on the device, which no division makes smaller. */
export function arraysOfResults(
  { batch, heads, queries, keys, resident, weightHeads, scoreStage }: AttentionSettings,
  rowElements: number,
): ArrayBytes[] {
  if (resident !== true) return [];
  const matrix = weightHeads !== undefined || scoreStage !== 0;
  return [
    { name: 'the resident output', bytes: batch * queries * rowElements * 4, axes: [] },
    {
      name: 'the resident matrix',
      bytes: matrix ? batch * heads * queries * keys * 4 : 0,
      axes: [],
    },
  ];
}

/** What keeps a call from a device: the first array that is too large for a binding, or undefined. */
export function whyTooLarge(
  arrays: readonly ArrayBytes[],
  { bindingBytes }: DeviceLimits,
): Obstacle | undefined {
  const tooLarge = arrays.find(({ bytes }) => bytes > bindingBytes);
  if (tooLarge === undefined) return undefined;
  return obstacleOf(tooLarge, bindingBytes);
}

export function obstacleOf({ name, bytes }: ArrayBytes, bindingBytes: number): Obstacle {
  return {
    reason: `${name} takes ${bytes} bytes, more than the GPU's maxStorageBufferBindingSize of ${bindingBytes}`,
    bytes,
  };
}
