/// <reference lib="esnext.disposable" preserve="true" />
// Public: the engine. Every method checks its arguments, makes a request, and hands it to whatever hosts the core.
import type { TensorLike } from './tensor-like.js';
import type { FloatsLike, IntegersLike } from './tensor-types.js';
import { disposed } from './errors.js';
import { GpuTensor } from './gpu-tensor.js';
import type { HandleOwner } from './handle.js';
import { KVCache } from './kv-cache.js';
import { MultiHeadAttention } from './layer/multi-head-attention.js';
import type { ComputeRequest } from './request.js';
import { residentOf, standIn } from './resident.js';
import {
  attentionGradients,
  attentionResult,
  merged,
  outputTensor,
  throwIfAborted,
  type AttentionGradients,
  type AttentionResultOf,
  type OptionsOf,
} from './results.js';
import type { GpuInfo, GpuReasonCode, LastCall } from './gpu-info.js';
import type { Router } from './backend/router.js';
import type { Tensor } from './tensor.js';
import { readTransformerConfig, type TransformerConfig } from './transformer/config.js';
import { Transformer } from './transformer/transformer.js';
import { readAttentionBackward } from './validation/attention-backward.js';
import { readAttention, type AttentionOptions, type CheckedCall } from './validation/attention.js';
import { readCacheConfig, type KVCacheConfig } from './validation/kv-cache.js';
import { readLayerConfig, type MultiHeadAttentionConfig } from './validation/layer-config.js';
import { readGpuBuffer } from './validation/gpu-buffer.js';
import { readEmbedding, readLinear, readPositionalEncoding } from './validation/layer-forward.js';
import { readMerge, type AttentionPart, type MergeOptions } from './validation/merge.js';
import { readRotary, type RotaryOptions } from './validation/rotary.js';
import { product, readShape, readTensor } from './validation/shapes.js';
import type { Variant } from './wasm/glue.js';

/** What an engine is made of, and why anything is off. */
export interface EngineInfo {
  /** The package's version. */
  version: string;
  /** What computes: 'auto' when both sides are there and each call goes where it is faster. */
  backend: 'wasm' | 'webgpu' | 'auto';
  /** Which WebAssembly build runs. */
  variant: Variant;
  /** How many threads share a call's work. */
  threads: number;
  /** Why there are fewer threads than were asked for, or than the machine has. */
  threadsReason?: string;
  simd: true;
  /** The GPU in use, with what 'auto' decides by. */
  gpu: Readonly<GpuInfo> | null;
  /** Why no GPU is used, in words; with 'auto' at first that it is being started. */
  gpuReason?: string;
  /** The same for programs. */
  gpuReasonCode?: GpuReasonCode;
  /** Whether the engine lives in a worker; then it has no synchronous calls. */
  offMainThread: boolean;
  /** Why it does not live in a worker although it was to. */
  offMainThreadReason?: string;
}

/** What does not change while an engine lives. @internal */
export type StaticInfo = Omit<EngineInfo, 'backend' | 'gpu' | 'gpuReason' | 'gpuReasonCode'>;

/** `engine.memory()`. All in bytes. */
export interface MemoryInfo {
  /** The WebAssembly heap. It grows on demand and never shrinks. */
  heapBytes: number;
  /** What is in use in it: parameters of layers and calls in progress, without working memory kept for the next call. */
  inUseBytes: number;
  /** The most that was ever taken from the heap. */
  peakBytes: number;
  /** All of the engine's buffers on the GPU, those kept for the next call among them. */
  gpuBytes: number;
}

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;
const asyncDisposeSymbol = (Symbol.asyncDispose ??
  Symbol.for('Symbol.asyncDispose')) as typeof Symbol.asyncDispose;

/**
 * An engine: one WebAssembly heap and its threads. Made by `createEngine`.
 *
 * Asynchronous calls are queued and run one after the other, in slices that leave the event loop alive. Their arguments are
 * read before the call returns: what is written to an input afterwards does not matter. Synchronous calls run at once, also
 * while an asynchronous one is in progress; they need the engine on this thread. After any error the engine works as before.
 */
export class Engine {
  readonly #info: StaticInfo;
  readonly #host: Router;
  #disposed = false;
  readonly #owner: HandleOwner;

  /** @internal */
  constructor(host: Router, info: StaticInfo) {
    this.#host = host;
    this.#info = info;
    let number = 1;
    this.#owner = {
      host,
      isRemote: info.offMainThread,
      checkAlive: () => this.#alive(),
      nextNumber: () => number++,
    };
  }

  /** What the engine is made of, now: a GPU may be lost, and found again. */
  get info(): Readonly<EngineInfo> {
    const gpu = this.#host.gpuInfo;
    const backend = gpu.gpu === null ? 'wasm' : this.#host.demandsGpu ? 'webgpu' : 'auto';
    return Object.freeze({ ...this.#info, backend, ...gpu });
  }

  /**
   * With 'auto' an engine does not wait for its GPU, which is asked for, tested and measured in the background: this resolves to
   * `info` when that is over, with whatever outcome. Never rejects.
   */
  async gpuReady(): Promise<Readonly<EngineInfo>> {
    await this.#host.gpuSettled;
    return this.info;
  }

  /** Which side did the last finished call, why, and how long it took; undefined before the first. */
  get lastCall(): Readonly<LastCall> | undefined {
    return this.#host.lastCall;
  }

  #alive(): Router {
    if (this.#disposed) throw disposed('the engine');
    return this.#host;
  }

  /**
   * Scaled dot-product attention: softmax(mask(softcap(scale·q·kᵀ) + bias))·v for every batch and head.
   *
   * @param q `[B,H,L,D]`, with layout 'blhd' `[B,L,H,D]`, of rank 3 `[B,L,H·D]` (needs `numHeads`), of rank 2 `[L,D]`.
   * @param k keys of the same rank: `[B,G,S,D]` and so on; G divides H.
   * @param v values: `[B,G,S,Dv]` and so on.
   * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE`, `INVALID_VALUE` or `OUT_OF_MEMORY`, `AbortError`,
   * HeadwiseError `DISPOSED`. All arguments are checked before any work.
   */
  async attention<O extends AttentionOptions>(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    options?: OptionsOf<O, AttentionOptions>,
  ): Promise<AttentionResultOf<O>> {
    const host = this.#alive();
    const call = readAttention(q, k, v, options);
    const response = await host.run(call.request, call.signal);
    return attentionResult(call, response) as AttentionResultOf<O>;
  }

  /** {@link Engine.attention}, at once. `UNSUPPORTED` where the engine lives in a worker. */
  attentionSync<O extends AttentionOptions>(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    options?: OptionsOf<O, AttentionOptions>,
  ): AttentionResultOf<O> {
    const host = this.#alive();
    const call = readAttention(q, k, v, options);
    throwIfAborted(call);
    return attentionResult(call, host.runSync(call.request, call.out)) as AttentionResultOf<O>;
  }

  /**
   * The gradients of {@link Engine.attention}: from that of its output to those of q, k, v, bias and sinks, in tiles and
   * without an L×S matrix. Give the tensors and options of the forward call, with its `output` and `logSumExp`
   * (`returnLogSumExp: true`). Slopes of ALiBi are fixed; dropout drops again what its seed dropped.
   *
   * @param dOutput the loss' gradient by the output, in its shape.
   * @param options as in the forward call; what it says of weights, scores and log-sum-exp to return is not looked at, and
   * `out` is an error.
   * @throws as {@link Engine.attention}.
   */
  async attentionBackward(
    dOutput: TensorLike,
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    output: TensorLike,
    logSumExp: TensorLike,
    options?: AttentionOptions,
  ): Promise<AttentionGradients> {
    const host = this.#alive();
    const call = readAttentionBackward(dOutput, q, k, v, output, logSumExp, options);
    return attentionGradients(call, await host.run(call.request, call.signal));
  }

  /** {@link Engine.attentionBackward}, at once. `UNSUPPORTED` where the engine lives in a worker. */
  attentionBackwardSync(
    dOutput: TensorLike,
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    output: TensorLike,
    logSumExp: TensorLike,
    options?: AttentionOptions,
  ): AttentionGradients {
    const host = this.#alive();
    const call = readAttentionBackward(dOutput, q, k, v, output, logSumExp, options);
    throwIfAborted(call);
    return attentionGradients(call, host.runSync(call.request));
  }

  /**
   * A multi-head attention layer with Glorot-uniform start values.
   *
   * @throws TypeError and RangeError that name the field; RangeError `OUT_OF_MEMORY` when the parameters do not fit (where the
   * engine lives in a worker, the layer's first call rejects with it).
   */
  multiHeadAttention(config: MultiHeadAttentionConfig): MultiHeadAttention {
    this.#alive();
    return new MultiHeadAttention(this.#owner, readLayerConfig(config));
  }

  /**
   * Joins attention over disjoint sets of keys, computed apart (in other workers, on other machines): outputs and log-sum-exps
   * of the same queries become those of one call over all the keys, by their log-sum-exps (Dao et al., "FlashAttention", 2022).
   * A part's row of log-sum-exp −Infinity saw no key and is left out. `sinks`, if any, belong to no part: leave them out of all.
   *
   * @param parts `{ output, logSumExp }` as `attention` returns them with `returnLogSumExp`, at least one.
   * @returns `output` in the parts' layout, `logSumExp` `[B,H,L]`.
   */
  mergeAttention(
    parts: readonly AttentionPart[],
    options: MergeOptions & { resident: true },
  ): Promise<{ output: GpuTensor; logSumExp: GpuTensor }>;
  mergeAttention(
    parts: readonly AttentionPart[],
    options?: MergeOptions,
  ): Promise<{ output: Tensor; logSumExp: Tensor }>;
  async mergeAttention(
    parts: readonly AttentionPart[],
    options?: MergeOptions,
  ): Promise<{ output: Tensor | GpuTensor; logSumExp: Tensor | GpuTensor }> {
    const host = this.#alive();
    const call = readMerge(parts, options);
    return merged(call, await host.run(call.request, call.signal));
  }

  /** {@link Engine.mergeAttention}, at once. */
  mergeAttentionSync(
    parts: readonly AttentionPart[],
    options?: MergeOptions,
  ): { output: Tensor; logSumExp: Tensor } {
    const host = this.#alive();
    const call = readMerge(parts, options);
    throwIfAborted(call);
    return merged(call, host.runSync(call.request));
  }

  /**
   * Rotary position embedding (Su et al., "RoFormer", 2021): pair i of a head's elements at position p is turned by p·f_i with
   * f_i = base^(−2i/dim), (a, b) ← (a·cos − b·sin, a·sin + b·cos). Angles are computed in double.
   *
   * @param x `[B,H,L,D]`, with layout 'blhd' `[B,L,H,D]`, of rank 3 `[B,L,H·D]` (needs `numHeads`), of rank 2 `[L,D]`.
   * @returns a tensor of x's shape.
   */
  async rotaryEmbedding(x: TensorLike, options?: RotaryOptions): Promise<Tensor> {
    return this.#compute(readRotary(x, options));
  }

  /** {@link Engine.rotaryEmbedding}, at once. */
  rotaryEmbeddingSync(x: TensorLike, options?: RotaryOptions): Tensor {
    return this.#computeSync(readRotary(x, options));
  }

  /**
   * A cache of keys and values for decoding, in the engine's heap or (`resident`) on its GPU: it takes batch · G · capacity · (D + Dv) numbers, counted in
   * `memory()`, until `dispose` (its own or the engine's) frees them.
   *
   * @throws TypeError and RangeError that name the field; RangeError `OUT_OF_MEMORY` when it does not fit (where the engine lives
   * in a worker, the cache's first call rejects with it; so it does for the GPU's memory).
   */
  createKVCache(config: KVCacheConfig): KVCache {
    this.#alive();
    return new KVCache(this.#owner, readCacheConfig(config));
  }

  /**
   * A Transformer that can be trained here: encoder-decoder, decoder or encoder. Start values are Glorot-uniform.
   *
   * @throws as {@link Engine.multiHeadAttention}.
   */
  transformer(config: TransformerConfig): Transformer {
    this.#alive();
    return new Transformer(this.#owner, readTransformerConfig(config));
  }

  /** x·kernel (+ bias) over the last axis: x `[…,in]`, kernel `[in,out]`, bias `[out]`. */
  async linear(x: TensorLike, kernel: FloatsLike, bias?: FloatsLike): Promise<Tensor> {
    return this.#compute(readLinear(x, kernel, bias));
  }

  /** {@link Engine.linear}, at once. */
  linearSync(x: TensorLike, kernel: FloatsLike, bias?: FloatsLike): Tensor {
    return this.#computeSync(readLinear(x, kernel, bias));
  }

  /** Rows of `table` `[V,E]` by `ids`, integers of any shape: `[…,E]`. */
  async embedding(ids: IntegersLike, table: FloatsLike): Promise<Tensor> {
    return this.#compute(readEmbedding(ids, table));
  }

  /** {@link Engine.embedding}, at once. */
  embeddingSync(ids: IntegersLike, table: FloatsLike): Tensor {
    return this.#computeSync(readEmbedding(ids, table));
  }

  /**
   * Sinusoidal position encodings `[length,dim]` (Vaswani et al., 2017): sin(p / 10000^(2i/dim)) at 2i, the cosine at 2i+1.
   * `dim` may be odd.
   */
  async positionalEncoding(length: number, dim: number): Promise<Tensor> {
    return this.#compute(readPositionalEncoding(length, dim));
  }

  /** {@link Engine.positionalEncoding}, at once. */
  positionalEncodingSync(length: number, dim: number): Tensor {
    return this.#computeSync(readPositionalEncoding(length, dim));
  }

  /**
   * Copies a tensor to the engine's GPU, where it stays until its `dispose()`.
   *
   * @throws HeadwiseError `UNSUPPORTED` without a GPU, RangeError `OUT_OF_MEMORY`.
   */
  async upload(value: TensorLike): Promise<GpuTensor> {
    const host = this.#alive();
    const { data, shape } = readTensor('tensor', value);
    const kept = residentOf(data)?.download() ?? data.slice();
    const resident = await (await host.awaitGpu('upload')).device.upload(await kept);
    return new GpuTensor(standIn(resident), shape);
  }

  /**
   * A caller's `GPUBuffer` as a tensor, without a copy: float32, row-major, from its first byte on. The buffer must belong to
   * the `gpuDevice` that the engine was made with and have the usage STORAGE (COPY_SRC as well for `download`). It stays the
   * caller's: `dispose()` only forgets it. With 'auto' await `gpuReady()` first.
   *
   * @throws HeadwiseError `UNSUPPORTED` without a GPU, TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` when the buffer is too small, `INVALID_VALUE` without STORAGE.
   */
  wrap(gpuBuffer: object, shape: ArrayLike<number>): GpuTensor {
    const { device } = this.#alive().needGpu('wrap');
    const sizes = readShape('shape', shape);
    const buffer = readGpuBuffer('gpuBuffer', gpuBuffer, product(sizes) * 4);
    return new GpuTensor(standIn(device.wrap(buffer, product(sizes))), sizes);
  }

  /** How much memory the engine holds. */
  async memory(): Promise<MemoryInfo> {
    return this.#alive().memory();
  }

  /** Ends the engine and its threads; calls in progress reject with `DISPOSED`. May be called again. */
  dispose(): void {
    this.#disposed = true;
    this.#host.dispose();
  }

  /** {@link Engine.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  /** {@link Engine.dispose}, for `await using`. */
  async [asyncDisposeSymbol](): Promise<void> {
    this.dispose();
    return Promise.resolve();
  }

  async #compute(call: CheckedCall<ComputeRequest>): Promise<Tensor> {
    const response = await this.#alive().run(call.request, call.signal);
    return outputTensor(response, call.out, call.outputShape);
  }

  #computeSync(call: CheckedCall<ComputeRequest>): Tensor {
    throwIfAborted(call);
    const response = this.#alive().runSync(call.request, call.out);
    return outputTensor(response, call.out, call.outputShape);
  }
}
