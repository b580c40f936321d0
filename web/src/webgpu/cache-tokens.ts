// WebGPU: what a step brings to a cache on the device: its tokens turned by their positions, those on this side packed.
import type { Backend } from '../backend/backend.js';
import { onHost, residentOf } from '../resident.js';
import type { CacheConfig, CacheStepRequest, Strides } from '../request.js';
import { gather } from './pieces.js';

/** What is known of a cache's tokens on this side. */
export interface CachedTokens {
  config: CacheConfig;
  lengths: Int32Array;
  /** `[B,capacity]`: what each key was turned by; empty without rope. */
  positions: Int32Array;
}

interface Rows {
  data: Float32Array;
  strides: Strides;
}

export interface Tokens {
  /** Of each row: how many are new. */
  added: Int32Array;
  /** Of each row: the place of the first query. */
  starts: Int32Array;
  /** `[B,L]`; empty without rope. */
  positions: Int32Array;
  q: Float32Array | undefined;
  /** Undefined where the step appends nothing. */
  k: Rows | undefined;
  v: Rows | undefined;
}

/** A row's part of the positions, as a view. */
export function positionsOf({ config, positions }: CachedTokens, b: number): Int32Array {
  return positions.subarray(b * config.capacity, (b + 1) * config.capacity);
}

/** Once the tokens are there. The lengths are those from before. */
export function keepPositions(cache: CachedTokens, { added, positions }: Tokens): void {
  if (positions.length === 0) return;
  const rows = positions.length / added.length;
  added.forEach((count, b) => {
    const places = positionsOf(cache, b);
    places.set(positions.subarray(b * rows, b * rows + count), cache.lengths[b] as number);
  });
}

// Rows that do not count stand at 0, which no table is too short for and which makes no text longer.
function rowPositions(
  cache: CachedTokens,
  { batch, queries, positions }: CacheStepRequest,
  counts: Int32Array,
  reads: boolean,
): Int32Array {
  const all = new Int32Array(batch * queries);
  for (let b = 0; b < batch; b++) {
    const count = counts[b] as number;
    const length = cache.lengths[b] as number;
    const next = length === 0 ? 0 : (positionsOf(cache, b)[length - 1] as number) + 1;
    const first = next - (reads ? count : 0);
    for (let i = 0; i < count; i++)
      all[b * queries + i] = positions?.[b * queries + i] ?? first + i;
  }
  return all;
}

/** `core` turns. */
export async function tokensOf(
  core: Pick<Backend, 'run'>,
  cache: CachedTokens,
  request: CacheStepRequest,
): Promise<Tokens> {
  const { batch, heads, kvHeads, queries, headDim, valueDim, kStrides, vStrides } = request;
  const { rope } = cache.config;
  const counts = request.qLengths ?? new Int32Array(batch).fill(queries);
  const reads = request.k === undefined;
  const added = reads ? new Int32Array(batch) : counts;
  const starts = cache.lengths.map((length, b) => length - (reads ? (counts[b] as number) : 0));
  let { q, k } = request;
  let positions: Int32Array = new Int32Array();
  if (rope !== undefined && queries > 0) {
    positions = rowPositions(cache, request, counts, reads);
    const rotated = async (
      x: Float32Array,
      strides: Strides,
      of: number,
    ): Promise<Float32Array> => {
      const { output } = await core.run({
        op: 'rotaryEmbedding',
        ...rope,
        batch,
        heads: of,
        rows: queries,
        size: headDim,
        x: (await onHost(x))[0],
        strides,
        offset: 0,
        positions: { data: positions, batchStride: queries },
      });
      return output as Float32Array;
    };
    if (k !== undefined) k = await rotated(k, kStrides as Strides, kvHeads);
    if (q !== undefined) q = await rotated(q, request.qStrides as Strides, heads);
  }
  // A token's row is one copy on the device, a packed head's rows are one altogether.
  const packed = (x: Float32Array, strides: Strides, size: number): Rows => {
    if (residentOf(x) !== undefined || strides[2] === size) return { data: x, strides };
    const all = (end: number) => ({ first: 0, end });
    return {
      data: gather(x, strides, size, all(batch), all(kvHeads), all(queries)),
      strides: [kvHeads * queries * size, queries * size, size],
    };
  };
  return {
    ...{ added, starts, positions, q },
    k: k === undefined ? undefined : packed(k, kStrides as Strides, headDim),
    v: request.v === undefined ? undefined : packed(request.v, vStrides as Strides, valueDim),
  };
}
