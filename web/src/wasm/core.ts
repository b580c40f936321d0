// Wasm: requests in, responses out: stages a call's arrays in the heap, fills its struct, crosses into C++ once, and copies
// the results out. Start reading at #stage.
import { invalidShape, invalidValue, outOfMemory } from '../errors.js';
import {
  isCompute,
  shortKinds,
  type CacheRequest,
  type ComputeRequest,
  type DecodingRequest,
  type LayerRequest,
  type Operation,
  type Request,
  type Response,
  type ShortRequest,
  type TransformerRequest,
} from '../request.js';
import { entriesOf, stagingOf, type Addresses, type Entry } from './arguments.js';
import { checkOut } from '../validation/fixed.js';
import { Caches } from './caches.js';
import { Decodings } from './decodings.js';
import type { Bindings } from './glue.js';
import { Heap, type Block } from './heap.js';
import { Layers } from './layers.js';
import type { CoreParts } from './objects.js';
import { Registry } from './registry.js';
import type { Input, Output } from './staging.js';
import type { Struct } from './struct.js';
import { Transformers } from './transformers.js';

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

export class Core {
  readonly #bindings: Bindings;
  readonly #heap: Heap;
  readonly #entries: Record<Operation, Entry>;
  readonly #registry = new Registry();
  readonly #layers: Layers;
  readonly #transformers: Transformers;
  readonly #caches: Caches;
  readonly #decodings: Decodings;
  readonly #addresses: Addresses;

  constructor(bindings: Bindings, memory: WebAssembly.Memory, maxBytes: number) {
    this.#bindings = bindings;
    this.#heap = new Heap(bindings, memory, maxBytes);
    const layout = bindings.layout();
    this.#entries = entriesOf(bindings, layout);
    const error = (what: string): Error => this.#error(what);
    const parts: CoreParts = {
      bindings,
      heap: this.#heap,
      layout,
      registry: this.#registry,
      error,
    };
    this.#layers = new Layers(parts);
    this.#transformers = new Transformers(parts);
    this.#caches = new Caches(parts);
    this.#decodings = new Decodings(parts);
    this.#addresses = {
      layer: (number) => this.#registry.addressOf('layer', number),
      model: (number) => this.#registry.addressOf('transformer', number),
      decays: (request) => this.#transformers.decaysOf(request),
      cache: (request) => this.#caches.addressFor(request),
      decoding: (request) => this.#decodings.addressFor(request),
    };
  }

  usage(): { heapBytes: number; inUseBytes: number; peakBytes: number } {
    return this.#heap.usage();
  }

  /** Everything at once. */
  run(request: Request, out?: Float32Array): Response {
    if (!isCompute(request)) return this.#runShort(request);
    const { struct, run } = this.#entries[request.op];
    const staged = this.#stage(request, struct);
    try {
      const status = run(staged.block.address);
      if (status !== 0) throw this.#refusal(request);
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
      const error = this.#refusal(request);
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
    const staging = stagingOf(request, struct, this.#addresses);
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
      if (array !== undefined) checkOut(array, length);
      response[result] = this.#heap.read(block.address + place, length, array);
    }
    return response;
  }

  #refusal(request: ComputeRequest): Error {
    const argument = this.#bindings.statusArgument();
    const why = request.op === 'cacheStep' ? this.#caches.whyRefused(request, argument) : undefined;
    return why ?? this.#error(request.op);
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

  #runShort(request: ShortRequest): Response {
    switch (shortKinds[request.op]) {
      case 'layer':
        return this.#layers.run(request as LayerRequest);
      case 'transformer':
        return this.#transformers.run(request as TransformerRequest);
      case 'cache':
        return this.#caches.run(request as CacheRequest);
      case 'decoding':
        return this.#decodings.run(request as DecodingRequest);
      case 'any':
        this.#registry.destroy((request as { number: number }).number);
        return {};
    }
  }
}
