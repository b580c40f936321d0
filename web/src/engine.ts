/// <reference lib="esnext.disposable" preserve="true" />
// Public: the engine. Every method checks its arguments, makes a request, and hands it to whatever hosts the core.
import { disposed } from './errors.js';
import { MultiHeadAttention } from './layer/multi-head-attention.js';
import type { ComputeRequest } from './request.js';
import {
  attentionGradients,
  attentionResult,
  throwIfAborted,
  type AttentionGradients,
  type AttentionResult,
} from './results.js';
import { Tensor, type TensorLike } from './tensor.js';
import { readTransformerConfig, type TransformerConfig } from './transformer/config.js';
import { Transformer } from './transformer/transformer.js';
import { readAttentionBackward } from './validation/attention-backward.js';
import { readAttention, type AttentionOptions, type CheckedCall } from './validation/attention.js';
import type { FloatsLike, IntegersLike } from './validation/attention-options.js';
import { readLayerConfig, type MultiHeadAttentionConfig } from './validation/layer-config.js';
import { readEmbedding, readLinear, readPositionalEncoding } from './validation/layer-forward.js';
import type { Variant } from './wasm/glue.js';
import type { Host } from './wasm/host.js';

/** What an engine is made of, and why anything is off. */
export interface EngineInfo {
  /** The package's version. */
  version: string;
  /** What computes. */
  backend: 'wasm';
  /** Which WebAssembly build runs. */
  variant: Variant;
  /** How many threads share a call's work. */
  threads: number;
  /** Why there are fewer threads than were asked for, or than the machine has. */
  threadsReason?: string;
  simd: true;
  gpu: null;
  /** Why no GPU is used. */
  gpuReason: string;
  /** Whether the engine lives in a worker; then it has no synchronous calls. */
  offMainThread: boolean;
  /** Why it does not live in a worker although it was to. */
  offMainThreadReason?: string;
}

/** `engine.memory()`. All in bytes. */
export interface MemoryInfo {
  /** The WebAssembly heap. It grows on demand and never shrinks. */
  heapBytes: number;
  /** What is in use in it: parameters of layers and calls in progress, without working memory kept for the next call. */
  inUseBytes: number;
  /** The most that was ever taken from the heap. */
  peakBytes: number;
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
  /** What the engine is made of. */
  readonly info: Readonly<EngineInfo>;
  readonly #host: Host;
  #disposed = false;
  #nextLayer = 1;

  /** @internal */
  constructor(host: Host, info: Readonly<EngineInfo>) {
    this.#host = host;
    this.info = info;
  }

  #alive(): Host {
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
  async attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    options?: AttentionOptions,
  ): Promise<AttentionResult> {
    const host = this.#alive();
    const call = readAttention(q, k, v, options);
    return attentionResult(call, await host.run(call.request, call.signal));
  }

  /** {@link Engine.attention}, at once. `UNSUPPORTED` where the engine lives in a worker. */
  attentionSync(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    options?: AttentionOptions,
  ): AttentionResult {
    const host = this.#alive();
    const call = readAttention(q, k, v, options);
    throwIfAborted(call);
    return attentionResult(call, host.runSync(call.request, call.out));
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
    const host = this.#alive();
    return new MultiHeadAttention(
      host,
      this.#nextLayer++,
      readLayerConfig(config),
      this.info.offMainThread,
      () => this.#alive(),
    );
  }

  /**
   * A Transformer that can be trained here: encoder-decoder, decoder or encoder. Start values are Glorot-uniform.
   *
   * @throws as {@link Engine.multiHeadAttention}.
   */
  transformer(config: TransformerConfig): Transformer {
    const host = this.#alive();
    return new Transformer(
      host,
      this.#nextLayer++,
      readTransformerConfig(config),
      this.info.offMainThread,
      () => this.#alive(),
    );
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

  /** How much memory the engine holds. */
  async memory(): Promise<MemoryInfo> {
    return { ...(await this.#alive().memory()), gpuBytes: 0 };
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
    return new Tensor(response.output as Float32Array, call.outputShape);
  }

  #computeSync(call: CheckedCall<ComputeRequest>): Tensor {
    const response = this.#alive().runSync(call.request);
    return new Tensor(response.output as Float32Array, call.outputShape);
  }
}
