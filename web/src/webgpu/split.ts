// WebGPU: attention whose arrays are larger than a kernel may see, as pieces that are not: ranges of batches, heads, queries
// and, when one head's keys alone are too many, keys. Pure: the same sizes and limit, the same pieces. Start reading at
// splitAttention.
import type { Obstacle } from '../backend/backend.js';
import type { AttentionSettings } from '../request.js';
import { whyTooLarge, type DeviceLimits } from './plan.js';

/** first … end − 1. */
export interface Range {
  first: number;
  end: number;
}

/** What a call of its own computes. All heads lie in whole groups, or in one group. */
export interface Piece {
  batches: Range;
  heads: Range;
  queries: Range;
  keys: Range;
}

export type SplitSizes = AttentionSettings & {
  kvHeads: number;
  headDim: number;
  valueDim: number;
};

type Axis = keyof Piece;

/** The order in which axes are halved: the last ones have arrays cross to the device more than once. */
const axes: readonly Axis[] = ['batches', 'heads', 'queries', 'keys'];

export const count = ({ first, end }: Range): number => end - first;

/** Key/value heads of a range of query heads. */
export function kvRange({ heads, kvHeads }: SplitSizes, range: Range): Range {
  const group = heads / kvHeads;
  return { first: Math.floor(range.first / group), end: Math.ceil(range.end / group) };
}

/** Whether a call needs no splitting. */
export function fitsWhole(sizes: SplitSizes, bindingBytes: number): boolean {
  const { batch, heads, queries, keys, headDim, valueDim } = sizes;
  // No array has more bytes than this: most calls need no closer look.
  const floats = queries * keys + (queries + keys) * Math.max(headDim, valueDim, 3);
  if (4 * batch * heads * floats + 192 * (batch + heads) <= bindingBytes) return true;
  const pieces = splitAttention(sizes, bindingBytes);
  return Array.isArray(pieces) && pieces.length === 1;
}

interface ArrayOf {
  name: string;
  bytes: number;
  /** Along which it gets smaller. */
  axes: readonly Axis[];
}

/** What a kernel would be bound to for a piece. */
function arraysOf(sizes: SplitSizes, piece: Piece): ArrayOf[] {
  const { headDim, valueDim, bias, mask, keyPaddingMask } = sizes;
  const [nb, nh, nq, nk] = axes.map((axis) => count(piece[axis])) as [
    number,
    number,
    number,
    number,
  ];
  const groups = count(kvRange(sizes, piece.heads));
  const rows = nb * nh * nq;
  const byRows: readonly Axis[] = ['batches', 'heads', 'queries'];
  // A part of a group needs the same keys, so halving heads helps only while there are several groups.
  const byKeys: readonly Axis[] =
    groups > 1 ? ['batches', 'heads', 'keys'] : (['batches', 'keys'] as const);
  const broadcast = (
    name: string,
    strides: readonly number[] | undefined,
    elementBytes: number,
  ): ArrayOf => {
    const along = axes.filter((_, i) => strides?.[i] !== undefined && strides[i] !== 0);
    const elements = along.reduce((product, axis) => product * count(piece[axis]), 1);
    return { name, bytes: strides === undefined ? 0 : elements * elementBytes, axes: along };
  };
  const masked = broadcast('mask', mask?.strides, 1);
  const wantsMatrix = sizes.weightHeads !== undefined || sizes.scoreStage !== 0;
  return [
    { name: 'q', bytes: rows * headDim * 4, axes: byRows },
    { name: 'k', bytes: nb * groups * nk * headDim * 4, axes: byKeys },
    { name: 'v', bytes: nb * groups * nk * valueDim * 4, axes: byKeys },
    { name: 'the output', bytes: rows * valueDim * 4, axes: byRows },
    { name: 'the statistics', bytes: rows * 12, axes: byRows },
    broadcast('bias', bias?.strides, 4),
    // These three lie in one array.
    { ...masked, bytes: masked.bytes * 3 },
    { name: 'keyPaddingMask', bytes: keyPaddingMask ? nb * nk * 3 : 0, axes: ['batches', 'keys'] },
    { name: 'lengths, slopes and sinks', bytes: 64 * (nb + nh) * 3, axes: ['batches', 'heads'] },
    {
      name: 'the matrix of weights or scores',
      bytes: wantsMatrix ? rows * nk * 4 : 0,
      axes: ['batches', 'heads', 'queries', 'keys'],
    },
  ];
}

/** What stays too large. */
export interface TooLarge {
  name: string;
  bytes: number;
}

/** 0 … size − 1 in ranges of `step`, those of each `unit` apart. */
function ranges(size: number, step: number, unit = size): Range[] {
  const all: Range[] = [];
  for (let start = 0; start < size; start += unit) {
    const unitEnd = Math.min(start + unit, size);
    for (let first = start; first < unitEnd; first += step)
      all.push({ first, end: Math.min(first + step, unitEnd) });
  }
  return all;
}

/**
 * The pieces in order, keys innermost; or the name and bytes of an array that no splitting makes small enough. All sizes at
 * least 1, but headDim.
 */
export function splitAttention(sizes: SplitSizes, bindingBytes: number): Piece[] | TooLarge {
  const { batch, heads, queries, keys } = sizes;
  const group = heads / sizes.kvHeads;
  const most = { batches: batch, heads, queries, keys };
  const whole = (size: number): Range => ({ first: 0, end: size });
  for (;;) {
    const largest: Piece = {
      batches: whole(most.batches),
      heads: whole(most.heads),
      queries: whole(most.queries),
      keys: whole(most.keys),
    };
    const tooLarge = arraysOf(sizes, largest).find(({ bytes }) => bytes > bindingBytes);
    if (tooLarge === undefined) break;
    const axis = axes.find((name) => tooLarge.axes.includes(name) && most[name] > 1);
    if (axis === undefined) return { name: tooLarge.name, bytes: tooLarge.bytes };
    // Whole groups as long as there are several.
    const unit = axis === 'heads' && most.heads > group ? group : 1;
    most[axis] = Math.ceil(most[axis] / unit / 2) * unit;
  }
  return ranges(batch, most.batches).flatMap((batches) =>
    ranges(heads, most.heads, most.heads < group ? group : heads).flatMap((headRange) =>
      ranges(queries, most.queries).flatMap((queryRange) =>
        ranges(keys, most.keys).map((keyRange) => ({
          batches,
          heads: headRange,
          queries: queryRange,
          keys: keyRange,
        })),
      ),
    ),
  );
}

export const dropoutReason =
  'dropout in a call that is too large for the device at once runs on the CPU';

/** What keeps a call that is too large for this device from being split, or undefined. */
export function whyNotSplit(sizes: SplitSizes, limits: DeviceLimits): Obstacle | undefined {
  // Its generator counts from the whole's first element, which a kernel that sees a piece does not know.
  if (sizes.dropout !== undefined) return { reason: dropoutReason };
  const pieces = splitAttention(sizes, limits.bindingBytes);
  if (!Array.isArray(pieces)) return whyTooLarge(pieces.name, pieces.bytes, limits);
  if (sizes.resident !== true) return undefined;
  const { batch, heads, queries, keys, valueDim } = sizes;
  const rows = batch * heads * queries;
  const wantsMatrix = sizes.weightHeads !== undefined || sizes.scoreStage !== 0;
  return (
    whyTooLarge('the resident output', rows * valueDim * 4, limits) ??
    whyTooLarge('the resident matrix', wantsMatrix ? rows * keys * 4 : 0, limits)
  );
}
