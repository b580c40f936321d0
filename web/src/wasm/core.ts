// Wasm: requests in, responses out: stages a call's arrays in the heap, fills its struct, crosses into C++ once, and copies
// the results out. Start reading at #stage.
import { disposed, invalidShape, invalidValue, outOfMemory } from '../errors.js';
import { parameterPaths, parameterShapes } from '../layer/parameters.js';
import {
  isCompute,
  type CacheRequest,
  type CacheStepRequest,
  type ComputeRequest,
  type DecodingRequest,
  type LayerConfig,
  type LayerRequest,
  type NamedArray,
  type Operation,
  type ParameterArrays,
  type Request,
  type Response,
  type ShortRequest,
  type TransformerDecodeRequest,
  type TransformerFields,
} from '../request.js';
import { product } from '../validation/shapes.js';
import { Caches } from './caches.js';
import { Decodings } from './decodings.js';
import type { Bindings } from './glue.js';
import { alignUp, Heap, type Block } from './heap.js';
import { entriesOf, stagingOf, setRope, type Entry } from './operations.js';
import type { Input, Output } from './staging.js';
import { Struct } from './struct.js';

/** A call that runs in slices. `end` must follow, whatever happened. */
export interface CoreCall {
  /** True when done. */
  run(budgetMs: number): boolean;
  response(): Response;
  end(): void;
}

interface Staged {
  outputs: readonly Output[];
  block: Block;
}

interface Layer {
  address: number;
  config: LayerConfig;
}

const merges = ['concat', 'sum'];
const scores = ['scaled-dot', 'dot', 'cosine', 'additive'];

export class Core {
  readonly #bindings: Bindings;
  readonly #heap: Heap;
  readonly #entries: Record<Operation, Entry>;
  readonly #configStruct: Struct;
  readonly #sourcesStruct: Struct;
  readonly #transformerStruct: Struct;
  readonly #layers = new Map<number, Layer>();
  // Addresses of models, by numbers that no layer has.
  readonly #models = new Map<number, number>();
  readonly #addressOf = (number: number): number =>
    this.#models.get(number) ?? this.#layer(number).address;
  readonly #caches: Caches;
  readonly #decodings: Decodings;
  readonly #decodingOf = (request: TransformerDecodeRequest): number =>
    this.#decodings.addressFor(request);
  readonly #cacheOf = (request: CacheStepRequest): number => this.#caches.addressFor(request);

  constructor(bindings: Bindings, memory: WebAssembly.Memory, maxBytes: number) {
    this.#bindings = bindings;
    this.#heap = new Heap(bindings, memory, maxBytes);
    const layout = bindings.layout();
    this.#entries = entriesOf(bindings, layout);
    this.#caches = new Caches(bindings, this.#heap, layout, (what) => this.#error(what));
    this.#decodings = new Decodings(bindings, this.#heap, (what) => this.#error(what));
    this.#configStruct = new Struct(layout, 'MultiHeadAttentionConfig');
    this.#sourcesStruct = new Struct(layout, 'ParameterSources');
    this.#transformerStruct = new Struct(layout, 'TransformerConfig');
  }

  usage(): { heapBytes: number; inUseBytes: number; peakBytes: number } {
    return this.#heap.usage();
  }

  /** Everything at once. */
  run(request: Request, out?: Float32Array): Response {
    if (!isCompute(request)) {
      if (isOfDecoding(request)) return this.#decodings.run(request, this.#addressOf);
      return isOfCache(request) ? this.#caches.run(request) : this.#runLayer(request);
    }
    const { struct, run } = this.#entries[request.op];
    const staged = this.#stage(request, struct);
    try {
      const status = run(staged.block.address);
      if (status !== 0) throw this.#error(request.op);
      return this.#collect(request, staged, out);
    } finally {
      this.#heap.returnBlock(staged.block);
    }
  }

  /** The same in slices. Calls may be begun and run while others are paused. */
  begin(request: ComputeRequest): CoreCall {
    const { struct, begin } = this.#entries[request.op];
    const staged = this.#stage(request, struct);
    const handle = begin(staged.block.address) >>> 0;
    if (handle === 0) {
      const error = this.#error(request.op);
      this.#heap.returnBlock(staged.block);
      throw error;
    }
    return {
      run: (budgetMs) => this.#bindings.runCall(handle, budgetMs),
      response: () => this.#collect(request, staged),
      end: () => {
        this.#bindings.endCall(handle);
        this.#heap.returnBlock(staged.block);
      },
    };
  }

  // One block for a call; see staging.ts.
  #stage(request: ComputeRequest, struct: Struct): Staged {
    const staging = stagingOf(request, struct, this.#addressOf, this.#cacheOf, this.#decodingOf);
    const { inputs, outputs, bytes } = staging;
    const block = this.#heap.takeBlock(bytes, request.op);
    try {
      const { address } = block;
      for (let i = 0; i < inputs.length; i++) {
        const { field, array, place, twin } = inputs[i] as Input;
        struct.set(field, address + place);
        if (!twin) this.#heap.write(array, address + place);
      }
      for (let i = 0; i < outputs.length; i++) {
        const { field, place } = outputs[i] as Output;
        struct.set(field, address + place);
      }
      struct.write(this.#heap.views(address + bytes), address);
    } catch (error) {
      this.#heap.returnBlock(block);
      throw error;
    }
    return { outputs, block };
  }

  #collect(request: ComputeRequest, { outputs, block }: Staged, out?: Float32Array): Response {
    const response: Response = {};
    if (request.op === 'cacheStep') response.lengths = this.#caches.lengths(request.cache);
    for (let i = 0; i < outputs.length; i++) {
      const { result, length, place } = outputs[i] as Output;
      const array = result === 'output' ? out : undefined;
      response[result] = this.#heap.read(block.address + place, length, array);
    }
    return response;
  }

  // Validation has caught what it can; this is what only the core knows, memory above all.
  #error(what: string): Error {
    const argument = this.#bindings.statusArgument();
    switch (this.#bindings.statusCode()) {
      case 1:
        return invalidShape(`${what}: ${argument} does not fit the other arguments`);
      case 2:
        return invalidValue(`${what}: ${argument} has a value that cannot be used`);
      default:
        return outOfMemory(what, this.#bindings.statusBytes(), this.#heap.maxBytes);
    }
  }

  #layer(layer: number): Layer {
    const found = this.#layers.get(layer);
    if (found === undefined) throw disposed('the layer');
    return found;
  }

  #runLayer(request: LayerRequest): Response {
    switch (request.op) {
      case 'createLayer':
        this.#createLayer(request.layer, request.config);
        return {};
      case 'destroyLayer': {
        const layer = this.#layers.get(request.layer);
        if (layer !== undefined) this.#bindings.destroyLayer(layer.address);
        this.#layers.delete(request.layer);
        return {};
      }
      case 'setParameters':
        this.#setParameters(this.#layer(request.layer), request.parameters);
        return {};
      case 'getParameters':
        return { parameters: this.#getParameters(this.#layer(request.layer)) };
      case 'createTransformer':
        this.#createTransformer(request.model, request.fields, request.moments);
        return {};
      case 'destroyTransformer': {
        const address = this.#models.get(request.model);
        if (address !== undefined) this.#bindings.destroyTransformer(address);
        this.#models.delete(request.model);
        return {};
      }
      case 'setTensors':
        this.#setTensors(request.model, request.tensors);
        return {};
      case 'getTensors':
        return { tensors: this.#tensorsOf(request.model, request.moments) };
    }
  }

  #createLayer(layer: number, config: LayerConfig): void {
    // The core keeps each parameter plain and packed.
    const bytes = parameterShapes(config).reduce(
      (sum, shape) => sum + 4 * (shape === undefined ? 0 : product(shape)),
      0,
    );
    this.#heap.check(bytes, 'multiHeadAttention');
    this.#heap.withBlock(this.#configStruct.size, 'layer', (address) => {
      const struct = this.#configStruct;
      struct.clear();
      struct.set('embed_dim', config.embedDim);
      struct.set('heads', config.heads);
      struct.set('kv_heads', config.kvHeads);
      struct.set('head_dim', config.headDim);
      struct.set('value_head_dim', config.valueHeadDim);
      struct.set('key_dim', config.keyDim);
      struct.set('value_dim', config.valueDim);
      struct.set('output_dim', config.outputDim);
      struct.set('bias', config.bias ? 1 : 0);
      struct.set('merge', merges.indexOf(config.merge));
      struct.set('projection', config.convolution === undefined ? 0 : 1);
      struct.set('kernel_size', config.convolution?.kernelSize ?? 1);
      struct.set('causal_convolution', config.convolution?.causal === true ? 1 : 0);
      struct.set('score', scores.indexOf(config.score));
      setRope(struct, config.rope);
      struct.set('seed_low', config.seed[0]);
      struct.set('seed_high', config.seed[1]);
      struct.write(this.#heap.views(), address);
      const created = this.#bindings.createLayer(address) >>> 0;
      if (created === 0) throw this.#error('multiHeadAttention');
      this.#layers.set(layer, { address: created, config });
    });
  }

  #createTransformer(model: number, fields: TransformerFields, moments: number): void {
    const struct = this.#transformerStruct;
    this.#heap.withBlock(struct.size, 'layer', (address) => {
      struct.clear();
      for (const [field, value] of Object.entries(fields)) struct.set(field, value);
      struct.write(this.#heap.views(), address);
      const created = this.#bindings.createTransformer(address, moments) >>> 0;
      if (created === 0) throw this.#error('transformer');
      this.#models.set(model, created);
    });
  }

  #places(model: number): ReturnType<Bindings['transformerTensors']> {
    const address = this.#models.get(model);
    if (address === undefined) throw disposed('the transformer');
    return this.#bindings.transformerTensors(address);
  }

  // All of them, in the core's order: names and shapes are checked against this before they are set.
  #tensorsOf(model: number, moments: boolean): NamedArray[] {
    const places = this.#places(model).filter(({ moment }) => moments || !moment);
    return places.map(({ name, shape, address }) => {
      return { name, shape, data: this.#heap.read(address >>> 0, product(shape)) };
    });
  }

  #setTensors(model: number, tensors: readonly NamedArray[]): void {
    const places = new Map(this.#places(model).map((place) => [place.name, place]));
    const { f32 } = this.#heap.views();
    // All or none.
    const targets = tensors.map(({ name, data }) => {
      const place = places.get(name);
      if (place === undefined || product(place.shape) !== data.length) {
        throw invalidShape(`${name}: ${data.length} elements do not fit the model`);
      }
      return (place.address >>> 0) / 4;
    });
    tensors.forEach(({ data }, i) => f32.set(data, targets[i] as number));
  }

  #setParameters(layer: Layer, parameters: ParameterArrays): void {
    const size = alignUp(this.#sourcesStruct.size);
    const bytes = parameters.reduce((sum, array) => sum + alignUp(array?.byteLength ?? 0), size);
    this.#heap.withBlock(bytes, 'layer', (address) => {
      const views = this.#heap.views();
      this.#sourcesStruct.write(views, address); // all null
      const pointers = (address + this.#sourcesStruct.offsetOf('data')) / 4;
      let at = address + size;
      parameters.forEach((array, kind) => {
        if (array === undefined) return;
        views.f32.set(array, at / 4);
        views.u32[pointers + kind] = at;
        at += alignUp(array.byteLength);
      });
      const status = this.#bindings.setParameters(layer.address, address);
      if (status !== 0) throw this.#error('setWeights');
    });
  }

  #getParameters(layer: Layer): ParameterArrays {
    const shapes = parameterShapes(layer.config);
    return parameterPaths.map((_, kind) => {
      const shape = shapes[kind];
      if (shape === undefined) return undefined;
      const length = product(shape);
      return this.#heap.withBlock(length * 4, 'layer', (address) => {
        this.#bindings.getParameter(layer.address, kind, address);
        return this.#heap.read(address, length);
      });
    });
  }
}

function isOfDecoding(request: ShortRequest): request is DecodingRequest {
  return 'decoding' in request;
}

function isOfCache(request: LayerRequest | CacheRequest): request is CacheRequest {
  return 'cache' in request;
}
