// WebGPU: an attention request as the numbers and the one small array (`extras`) that its kernels are given.
import { lengthsOf } from '../options/cut.js';
import type { AttentionRequest } from '../request.js';
import type { AttentionPlan } from './plan.js';
import { options, type Params } from './shaders/params.js';

type Settings = Omit<AttentionRequest, 'q' | 'k' | 'v' | 'op'>;

/** Params that hold for all of a call's kernels; what differs is filled in later. */
export type CallParams = Omit<Params, 'first' | 'end' | 'grid_x' | 'stage' | 'slots' | 'heads_at'>;

/**
 * Lengths and offsets by batch, slopes and sinks by head, masks as bytes, four to a word: all in one array, so that no device's
 * number of storage bindings is too small.
 */
export class Extras {
  readonly #parts: { at: number; words: ArrayLike<number>; bytes: boolean; floats: boolean }[] = [];
  #length = 0;

  /** Returns the place, in words. */
  integers(words: ArrayLike<number>): number {
    return this.#add(words, words.length, false, false);
  }

  floats(values: Float32Array): number {
    return this.#add(values, values.length, false, true);
  }

  bytes(values: Uint8Array): number {
    return this.#add(values, Math.ceil(values.length / 4), true, false);
  }

  #add(words: ArrayLike<number>, length: number, bytes: boolean, floats: boolean): number {
    const at = this.#length;
    this.#parts.push({ at, words, bytes, floats });
    this.#length += length;
    return at;
  }

  get byteLength(): number {
    return this.#length * 4;
  }

  array(): Uint32Array {
    const array = new Uint32Array(this.#length);
    for (const { at, words, bytes, floats } of this.#parts) {
      if (bytes) new Uint8Array(array.buffer, at * 4, words.length).set(words);
      else if (floats) new Float32Array(array.buffer, at * 4, words.length).set(words);
      else array.set(words, at);
    }
    return array;
  }
}

/** [kvLength, qLength, offset] for every batch. */
function limitsOf(request: Settings): Int32Array {
  const limits = new Int32Array(3 * request.batch);
  for (let b = 0; b < request.batch; b++) {
    const { kvLength, qLength, offset } = lengthsOf(request, b);
    limits.set([kvLength, qLength, offset], 3 * b);
  }
  return limits;
}

/** Puts the options' arrays into `extras`. */
export function callParams(request: Settings, plan: AttentionPlan, extras: Extras): CallParams {
  const { bias, mask, keyPaddingMask, alibiSlopes, sinks, dropout } = request;
  let flags = 0;
  const place = <A>(option: number, array: A | undefined, add: (array: A) => number): number => {
    if (array === undefined) return 0;
    flags |= option;
    return add(array);
  };
  const limits_at = extras.integers(limitsOf(request));
  const slopes_at = place(options.slopes, alibiSlopes, (array) => extras.floats(array));
  const sinks_at = place(options.sinks, sinks, (array) => extras.floats(array));
  const mask_at = place(options.mask, mask, ({ data }) => extras.bytes(data));
  const padding_at = place(options.padding, keyPaddingMask, (array) => extras.bytes(array));
  if (bias !== undefined) flags |= options.bias;
  // The core holds the rate as a float; so do these, to drop the very same weights.
  const rate = Math.fround(dropout?.rate ?? 0);
  if (dropout !== undefined) flags |= options.dropout | (rate >= 1 ? options.dropAll : 0);
  const [q_batch, q_head, q_row] = request.qStrides;
  const [k_batch, k_head, k_row] = request.kStrides;
  const [v_batch, v_head, v_row] = request.vStrides;
  const [out_batch, out_head, out_row] = request.outStrides;
  const [bias_batch, bias_head, bias_row, bias_column] = bias?.strides ?? [0, 0, 0, 0];
  const [mask_batch, mask_head, mask_row, mask_column] = mask?.strides ?? [0, 0, 0, 0];
  return {
    batch: request.batch,
    heads: request.heads,
    kv_heads: request.kvHeads,
    queries: request.queries,
    keys: request.keys,
    head_dim: request.headDim,
    value_dim: request.valueDim,
    ...{ q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row },
    ...{ out_batch, out_head, out_row, bias_batch, bias_head, bias_row, bias_column },
    ...{ mask_batch, mask_head, mask_row, mask_column },
    scale: request.scale,
    softcap: request.softcap,
    flags,
    window_left: request.window[0],
    window_right: request.causal ? 0 : request.window[1],
    drop_below: rate >= 1 ? 0 : Math.floor(rate * 2 ** 32),
    keep_scale: rate >= 1 ? 0 : Math.fround(1 / Math.fround(1 - rate)),
    seed_low: dropout?.seed[0] ?? 0,
    seed_high: dropout?.seed[1] ?? 0,
    ...{ limits_at, slopes_at, sinks_at, mask_at, padding_at },
    group_rows: (request.heads / request.kvHeads) * request.queries,
    row_tiles: plan.rowTiles,
    column_chunks: plan.columnChunks,
    splits: plan.splits,
    split_keys: plan.splitKeys,
    first_unit: 0,
    pass_units: 0,
  };
}
