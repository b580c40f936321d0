/// <reference lib="esnext.disposable" preserve="true" />
// Public: the multi-head attention layer. The parameters live in the core; this object knows their shapes and a number.
import type { TensorLike } from '../tensor-like.js';
import type { FloatsLike } from '../tensor-types.js';
import { Handle, type HandleOwner } from '../handle.js';
import type { LayerConfig, ParameterArrays } from '../request.js';
import {
  attentionResult,
  throwIfAborted,
  type AttentionResultOf,
  type OptionsOf,
} from '../results.js';
import type { Tensor } from '../tensor.js';
import { checkAttached } from '../validation/fixed.js';
import { readForward, type ForwardOptions } from '../validation/layer-forward.js';
import { readKeras } from './keras.js';
import {
  parameterPaths,
  readWeights,
  toWeights,
  type LayerWeights,
  type LayerWeightsLike,
} from './parameters.js';
import { readTorch, toTorch, type LoadTorchOptions, type TorchStateDict } from './torch.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/** Multi-head attention (Vaswani et al., 2017): projections to heads, attention, merge, output projection. */
export class MultiHeadAttention {
  readonly #handle: Handle;
  readonly #config: LayerConfig;

  /** Use `engine.multiHeadAttention`. @internal */
  constructor(owner: HandleOwner, config: LayerConfig) {
    this.#config = config;
    this.#handle = new Handle(owner, 'layer', (layer) => ({ op: 'createLayer', layer, config }));
  }

  /**
   * @param query `[B,L,E]` or `[L,E]`.
   * @param key `[B,S,keyDim]` or `[S,keyDim]`, by default the query.
   * @param value `[B,S,valueDim]` or `[S,valueDim]`, by default the key.
   * @returns `output` `[B,L,outputDim]` or `[L,outputDim]`; `weights` `[B,H,L,S]` with `returnWeights`, `[B,L,S]` with
   * `averageWeights`.
   * @throws as `engine.attention`.
   */
  async forward<O extends ForwardOptions>(
    query: TensorLike,
    key?: TensorLike,
    value?: TensorLike,
    options?: OptionsOf<O, ForwardOptions>,
  ): Promise<AttentionResultOf<O>> {
    this.#handle.check();
    const call = readForward(this.#handle.number, this.#config, query, key, value, options);
    const response = await this.#handle.run(call.request, call.signal);
    return attentionResult(call, response) as AttentionResultOf<O>;
  }

  /** {@link MultiHeadAttention.forward}, at once. `UNSUPPORTED` where the engine lives in a worker. */
  forwardSync<O extends ForwardOptions>(
    query: TensorLike,
    key?: TensorLike,
    value?: TensorLike,
    options?: OptionsOf<O, ForwardOptions>,
  ): AttentionResultOf<O> {
    this.#handle.check();
    const call = readForward(this.#handle.number, this.#config, query, key, value, options);
    throwIfAborted(call);
    const response = this.#handle.runSync(call.request, call.out);
    return attentionResult(call, response) as AttentionResultOf<O>;
  }

  /** All parameters, as copies: kernels `[in,heads,size]`, the output's `[heads,size,out]`. */
  async getWeights(): Promise<LayerWeights> {
    return toWeights(await this.#parameters(), this.#config);
  }

  /** Sets those parameters that are given, all or none; the shapes are those of `getWeights`. */
  async setWeights(weights: LayerWeightsLike): Promise<void> {
    this.#handle.check();
    await this.#setParameters(readWeights(weights, this.#config));
  }

  /**
   * Sets the parameters from Keras' `layer.get_weights()`: of `keras.layers.MultiHeadAttention`, or of a layer made of four
   * Dense layers, in the order query, key, value, output, each kernel followed by its bias if it has one.
   */
  async loadKeras(arrays: readonly FloatsLike[]): Promise<void> {
    this.#handle.check();
    await this.#setParameters(readKeras(arrays, this.#config));
  }

  /**
   * Sets the parameters from the state dict of `torch.nn.MultiheadAttention`, packed or separate. PyTorch's boolean masks
   * there say what to hide: invert them for `mask` and `keyPaddingMask`.
   *
   * @param options `prefix`: where the layer's names begin in the state dict of a whole model.
   */
  loadTorch(stateDict: TorchStateDict, options?: LoadTorchOptions): Promise<void>;
  loadTorch(
    stateDict: Readonly<Record<string, unknown>>,
    options: LoadTorchOptions & { prefix: string },
  ): Promise<void>;
  async loadTorch(
    stateDict: TorchStateDict | Readonly<Record<string, unknown>>,
    options?: LoadTorchOptions,
  ): Promise<void> {
    this.#handle.check();
    await this.#setParameters(readTorch(stateDict, this.#config, options));
  }

  /** The state dict of the `torch.nn.MultiheadAttention` with these parameters. */
  async toTorch(): Promise<TorchStateDict<Tensor>> {
    return toTorch(await this.#parameters(), this.#config);
  }

  /** Frees the parameters once calls in progress are done; the object is of no use afterwards. May be called again. */
  dispose(): void {
    this.#handle.dispose();
  }

  /** {@link MultiHeadAttention.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  async #parameters(): Promise<ParameterArrays> {
    const request = { op: 'getParameters', layer: this.#handle.number } as const;
    return (await this.#handle.run(request)).parameters as ParameterArrays;
  }

  async #setParameters(parameters: ParameterArrays): Promise<void> {
    // A getter of one of them may have detached another that was read before.
    parameters.forEach((array, kind) => {
      if (array !== undefined) checkAttached((parameterPaths[kind] ?? []).join('.'), array);
    });
    await this.#handle.run({ op: 'setParameters', layer: this.#handle.number, parameters });
  }
}
