// Options: how a piece of a divided call cuts settings: ranges of batches, heads, queries and keys of what is given whole. Pure.
import type { AttentionSettings, BroadcastStrides } from '../request.js';

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

/** A piece of a call, and whether other pieces have other keys of the same rows, so that their results are joined. */
export interface CallPiece extends Piece {
  isOneOfSeveralKeyRanges: boolean;
}

export const count = ({ first, end }: Range): number => end - first;

/** An array's elements of a range. */
export function range<A extends Float32Array | Int32Array | Uint8Array>(
  array: A,
  { first, end }: Range,
): A {
  return array.slice(first, end) as A;
}

/** A broadcast array's part, packed; axes along which it is repeated stay so. */
export function broadcast<A extends Float32Array | Uint8Array>(
  { data, strides }: { data: A; strides: BroadcastStrides },
  { batches, heads, queries, keys }: Piece,
): { data: A; strides: BroadcastStrides } {
  const ranges = [batches, heads, queries, keys].map((own, axis) =>
    strides[axis] === 0 ? { first: 0, end: 1 } : own,
  ) as [Range, Range, Range, Range];
  const sizes = ranges.map(count) as [number, number, number, number];
  const packed = new (data.constructor as new (length: number) => A)(
    sizes.reduce((a, b) => a * b, 1),
  );
  let at = 0;
  for (let b = ranges[0].first; b < ranges[0].end; b++)
    for (let h = ranges[1].first; h < ranges[1].end; h++)
      for (let i = ranges[2].first; i < ranges[2].end; i++) {
        const base = b * strides[0] + h * strides[1] + i * strides[2];
        if (strides[3] <= 1) {
          packed.set(data.subarray(base + ranges[3].first, base + ranges[3].end), at);
          at += sizes[3];
        } else {
          for (let j = ranges[3].first; j < ranges[3].end; j++)
            packed[at++] = data[base + j * strides[3]] as number;
        }
      }
  const own = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1];
  return {
    data: packed,
    strides: own.map((stride, axis) => (strides[axis] === 0 ? 0 : stride)) as BroadcastStrides,
  };
}

/** A batch's lengths, and where its query 0 stands among the keys. */
export function lengthsOf(
  { keys, queries, kvLengths, qLengths, causalOffsets }: AttentionSettings,
  b: number,
): { kvLength: number; qLength: number; offset: number } {
  const kvLength = kvLengths?.[b] ?? keys;
  const qLength = qLengths?.[b] ?? queries;
  return { kvLength, qLength, offset: causalOffsets?.[b] ?? kvLength - qLength };
}

const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most);

/** Lengths and offsets of a piece's batches, counted from its own first query and key. */
export function limits(
  settings: AttentionSettings,
  { batches, queries, keys }: Piece,
): Pick<AttentionSettings, 'kvLengths' | 'qLengths' | 'causalOffsets'> {
  const kvLengths = new Int32Array(count(batches));
  const qLengths = new Int32Array(count(batches));
  const causalOffsets = new Int32Array(count(batches));
  for (let n = 0; n < count(batches); n++) {
    const { kvLength, qLength, offset } = lengthsOf(settings, batches.first + n);
    kvLengths[n] = clamp(kvLength - keys.first, count(keys));
    qLengths[n] = clamp(qLength - queries.first, count(queries));
    causalOffsets[n] = offset + queries.first - keys.first;
  }
  return { kvLengths, qLengths, causalOffsets };
}

/** Places of the wanted heads that a piece has: their slots in the whole, and their numbers in the piece. */
export function slotsOf(
  { heads: all, weightHeads }: AttentionSettings,
  heads: Range,
): { slot: number; head: number }[] {
  if (weightHeads === undefined) return [];
  const wanted =
    weightHeads === 'all' ? Array.from({ length: all }, (_, h) => h) : Array.from(weightHeads);
  return wanted
    .map((head, slot) => ({ slot, head: head - heads.first }))
    .filter(({ head }) => head >= 0 && head < count(heads));
}
