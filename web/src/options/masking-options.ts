// Public: the options that attention, the layer and the cache share, as types. What follows from each stands in table.ts.
import type {
  BitMask,
  BlockMask,
  BooleansLike,
  FloatsLike,
  IntegersLike,
} from '../tensor-types.js';

/** The stage at which scores are returned. */
export type ScoreStage = 'raw' | 'softcapped' | 'masked';

/** Options that `engine.attention` and a layer's `forward` share. */
export interface MaskingOptions {
  /** c > 0: score ← c·tanh(score/c), before bias and mask. 0 or undefined: none. */
  softcap?: number | undefined;
  /** Floats added to the scores, broadcast right-aligned to `[B,H,L,S]`; never scaled; −Infinity hides, a finite value hides nothing. */
  bias?: FloatsLike | undefined;
  /** Booleans, **true = may be attended to**, broadcast right-aligned to `[B,H,L,S]`: rank 2 is `[L,S]`, rank 3 `[H,L,S]`. */
  mask?: BooleansLike | BitMask | undefined;
  /** Blocks of keys that blocks of queries may see; the rest is skipped. Together with the other masks, a key must pass all. */
  blockMask?: BlockMask | undefined;
  /** Booleans `[B,S]`, true = a real token. */
  keyPaddingMask?: BooleansLike | undefined;
  /** Integers `[B]`, 0…S: how many keys are valid. Default S. */
  kvLengths?: IntegersLike | undefined;
  /** Integers `[B]`, 0…L: how many queries are valid; rows past the end come out 0. Default L. */
  qLengths?: IntegersLike | undefined;
  /** Key j is visible to query i iff j ≤ i + `causalOffset`. Default false. */
  causal?: boolean | undefined;
  /** An integer, or integers `[B]`. Default `kvLength − qLength`: the last query sees the last key; 0 aligns top left. */
  causalOffset?: number | IntegersLike | undefined;
  /** `[left, right]` keys around position i + offset, which is always inside itself; Infinity = open. Default open. */
  window?: readonly [left: number, right: number] | undefined;
  /** `[H]`: adds −slope·|i + offset − j| to the scores. */
  alibiSlopes?: FloatsLike | undefined;
  /** `[H]`: one more logit a head in the softmax's denominator, with no value. */
  sinks?: FloatsLike | undefined;
  /** Training only: drops weights at `rate` 0…1 and scales kept ones by 1/(1−rate). The same `seed` drops the same. */
  dropout?: { rate: number; seed?: number | undefined } | undefined;
  /** true, or the heads wanted: weights `[B,H,L,S]` after the softmax, before dropout. Default false. */
  returnWeights?: boolean | { heads: readonly number[] } | undefined;
  /** The scores `[B,H,L,S]` at a stage: scaled, then softcapped, then biased and masked (−Infinity where hidden). */
  returnScores?: ScoreStage | undefined;
  /** The natural log-sum-exp of the scores, `[B,H,L]`; −Infinity for a row without a visible key. Default false. */
  returnLogSumExp?: boolean | undefined;
  /** Where to write the output: a `Float32Array` of just its length, which also becomes the tensor's `data`. */
  out?: Float32Array | undefined;
  /** Leave the results on the GPU, as `GpuTensor`s. Needs an engine with a GPU; `out` cannot be given with it. Default false. */
  resident?: boolean | undefined;
  /** Aborts the call, noticed within 100 ms of work; the call rejects with an `AbortError`. */
  signal?: AbortSignal | undefined;
}
