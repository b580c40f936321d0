// WebGPU: attention whose arrays are larger than a kernel may see, as pieces that are not: ranges of batches, heads, queries
// and, when one head's keys alone are too many, keys. Pure: the same sizes and limit, the same pieces. Start reading at
// splitAttention.
import type { Obstacle } from '../backend/backend.js';
import type { Piece, Range } from '../options/cut.js';
import { whyNotDivided } from '../options/settings.js';
import {
  arraysOfAttention,
  arraysOfResults,
  axes,
  obstacleOf,
  whyTooLarge,
  type ArrayBytes,
  type SplitSizes,
} from './array-bytes.js';
import type { DeviceLimits } from './plan.js';

/** Whether a call needs no splitting. */
export function fitsWhole(sizes: SplitSizes, bindingBytes: number): boolean {
  const { batch, heads, queries, keys, headDim, valueDim } = sizes;
  // No array has more bytes than this: most calls need no closer look.
  const floats = queries * keys + (queries + keys) * Math.max(headDim, valueDim, 3);
  if (4 * batch * heads * floats + 192 * (batch + heads) <= bindingBytes) return true;
  const pieces = splitAttention(sizes, bindingBytes);
  return Array.isArray(pieces) && pieces.length === 1;
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
export function splitAttention(sizes: SplitSizes, bindingBytes: number): Piece[] | ArrayBytes {
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
    const tooLarge = arraysOfAttention(sizes, largest).find(({ bytes }) => bytes > bindingBytes);
    if (tooLarge === undefined) break;
    const axis = axes.find((name) => tooLarge.axes.includes(name) && most[name] > 1);
    if (axis === undefined) return tooLarge;
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

/** What keeps a call that is too large for this device from being split, or undefined. */
export function whyNotSplit(sizes: SplitSizes, limits: DeviceLimits): Obstacle | undefined {
  const reason = whyNotDivided(sizes);
  if (reason !== undefined) return { reason };
  const pieces = splitAttention(sizes, limits.bindingBytes);
  if (!Array.isArray(pieces)) return obstacleOf(pieces, limits.bindingBytes);
  return whyTooLarge(arraysOfResults(sizes, sizes.heads * sizes.valueDim), limits);
}
