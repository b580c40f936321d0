// Transformer: what each kind of its attention may see besides padding, checked, as the core's scopes.
import type { BooleansLike, FloatsLike } from '../tensor-types.js';
import type { TransformerBatch, TransformerScope } from '../request.js';
import { broadcast } from '../options/readers.js';
import { partOf } from '../validation/fixed.js';
import { readBoolean, readOptions } from '../validation/options.js';
import { checkShape, readAnyBooleans, readAnyFloats } from '../validation/shapes.js';

/** What one kind of attention may see, in every layer: `mask` and `bias` as `engine.attention` has them. */
export interface TransformerAttentionOptions {
  /** Booleans, **true = may be attended to**, broadcast right-aligned to `[B,H,rows,keys]`: rank 2 is `[rows,keys]`. */
  mask?: BooleansLike | undefined;
  /** Floats added to the scores, broadcast likewise; −Infinity hides. They are given, not learned. */
  bias?: FloatsLike | undefined;
}

/**
 * The masks of `torch.nn.Transformer`'s `forward`, with **true = may be attended to** where PyTorch's booleans mean the opposite:
 * `src_mask` is `sourceAttention.mask`, `tgt_mask` `targetAttention.mask`, `memory_mask` `memoryAttention.mask` (float masks the
 * `bias` of each), `src_key_padding_mask` `sourceMask`, `tgt_key_padding_mask` `targetMask`, `memory_key_padding_mask`
 * `memoryMask`. A row that may see nothing gets zeros from attention.
 */
export interface TransformerMasks {
  /** `[B,S]`, true: a real token. Default: all. */
  sourceMask?: BooleansLike | undefined;
  /** `[B,L]`, true: a token that the decoder's rows may see. Default: all; padding at the end is unseen by what is before it. */
  targetMask?: BooleansLike | undefined;
  /** `[B,S]`, true: the decoder may see it. Default: `sourceMask`. */
  memoryMask?: BooleansLike | undefined;
  /** Whether row i of the target sees rows 0…i alone. Default true. */
  causal?: boolean | undefined;
  /** Of the encoder's rows to each other, `[B,H,S,S]`. */
  sourceAttention?: TransformerAttentionOptions | undefined;
  /** Of the decoder's rows to each other, `[B,H,L,L]`; beside `causal`. */
  targetAttention?: TransformerAttentionOptions | undefined;
  /** Of the decoder's rows to the encoder's output, `[B,H,L,S]`. */
  memoryAttention?: TransformerAttentionOptions | undefined;
}

/** Options that a model without an encoder, a decoder, or one of the two does not have. */
export const maskNames = {
  encoder: ['sourceMask', 'sourceAttention'],
  decoder: ['targetMask', 'targetAttention', 'causal'],
  both: ['memoryMask', 'memoryAttention'],
};

const attentionNames = new Set(['mask', 'bias']);

/** Reads the masks into a batch whose sizes are known. */
export function readMasks(
  batch: TransformerBatch,
  heads: number,
  given: Record<string, unknown>,
): void {
  const { batch: count, sourceLength: s, targetLength: l } = batch;
  const padding = (name: string, length: number, letters: string): Uint8Array | undefined => {
    if (given[name] === undefined) return undefined;
    const { data, shape } = readAnyBooleans(name, given[name]);
    checkShape(name, shape, [count, length], letters);
    return data;
  };
  const scope = (name: string, rows: number, keys: number): TransformerScope | undefined => {
    if (given[name] === undefined) return undefined;
    const { mask, bias } = readOptions(name, given[name], attentionNames);
    const target: [number, number, number, number] = [count, heads, rows, keys];
    const read: TransformerScope = {};
    if (mask !== undefined)
      read.mask = broadcast(`${name}.mask`, readAnyBooleans(`${name}.mask`, mask), target);
    if (bias !== undefined)
      read.bias = broadcast(`${name}.bias`, readAnyFloats(`${name}.bias`, bias), target);
    return read;
  };
  const set = <K extends keyof TransformerBatch>(
    key: K,
    value: TransformerBatch[K] | undefined,
  ): void => {
    if (value !== undefined) batch[key] = value;
  };
  set('sourceMask', padding('sourceMask', s, '[B,S]'));
  set('targetMask', padding('targetMask', l, '[B,L]'));
  set('memoryMask', padding('memoryMask', s, '[B,S]'));
  set('sourceScope', scope('sourceAttention', s, s));
  set('targetScope', scope('targetAttention', l, l));
  set('memoryScope', scope('memoryAttention', l, s));
  if (!readBoolean('causal', given.causal, true)) batch.targetOpen = true;
}

/** Those of the sequences `first` … `end` − 1. */
export function partOfMasks(
  batch: TransformerBatch,
  part: TransformerBatch,
  first: number,
  end: number,
): void {
  const rows = <A extends Float32Array | Uint8Array>(name: string, array: A, stride: number): A =>
    partOf(name, array, first * stride, stride > 0 ? end * stride : array.length);
  for (const key of ['sourceMask', 'targetMask', 'memoryMask'] as const) {
    const mask = batch[key];
    if (mask !== undefined) part[key] = rows(key, mask, mask.length / batch.batch);
  }
  for (const key of ['sourceScope', 'targetScope', 'memoryScope'] as const) {
    if (batch[key] === undefined) continue;
    const { mask, bias } = batch[key];
    part[key] = {};
    if (mask !== undefined)
      part[key].mask = { data: rows(key, mask.data, mask.strides[0]), strides: mask.strides };
    if (bias !== undefined)
      part[key].bias = { data: rows(key, bias.data, bias.strides[0]), strides: bias.strides };
  }
}
