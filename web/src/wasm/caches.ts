// Wasm: the key/value caches that live in the heap, by the numbers that their owners chose.
import { invalidValue } from '../errors.js';
import type { CacheConfig, CacheRequest, CacheStepRequest, Response } from '../request.js';
import { setRope } from './arguments.js';
import type { CoreParts } from './objects.js';
import { Struct } from './struct.js';

export class Caches {
  readonly #core: CoreParts;
  readonly #configStruct: Struct;

  constructor(core: CoreParts) {
    this.#core = core;
    this.#configStruct = new Struct(core.layout, 'KeyValueCacheConfig');
  }

  run(request: CacheRequest): Response {
    switch (request.op) {
      case 'createCache':
        this.#create(request.cache, request.config);
        return {};
      case 'forkCache':
        this.#fork(request.cache, request.from, request.rows);
        return {};
      case 'trimCache':
        this.#trim(request.cache, request.lengths);
        return { lengths: this.lengths(request.cache) };
      case 'readCache':
        return { lengths: this.lengths(request.cache) };
    }
  }

  /** The address of the cache that a step goes to, if it still is what the step was made for. */
  addressFor({ cache, starts }: CacheStepRequest): number {
    const address = this.#core.registry.addressOf('cache', cache);
    if (this.lengths(cache).some((length, b) => length !== starts[b])) {
      throw invalidValue(
        'k: an earlier call on this cache has failed, so these tokens would not stand where they belong',
      );
    }
    return address;
  }

  lengths(number: number): Int32Array {
    const { bindings, heap, registry } = this.#core;
    const at = (bindings.cacheLengths(registry.addressOf('cache', number)) >>> 0) / 4;
    const batch = registry.detailsOf<number>('cache', number);
    return new Int32Array(heap.views().i32.subarray(at, at + batch));
  }

  #create(number: number, config: CacheConfig): void {
    const struct = this.#configStruct;
    struct.clear();
    struct.set('batch', config.batch);
    struct.set('kv_heads', config.kvHeads);
    struct.set('head_dim', config.headDim);
    struct.set('value_dim', config.valueDim);
    struct.set('capacity', config.capacity);
    struct.set('cell_type', config.cellType);
    struct.set('window', config.window);
    struct.set('sink_tokens', config.sinkTokens);
    setRope(struct, config.rope);
    const { bindings, heap } = this.#core;
    heap.withBlock(struct.size, 'the cache', (address) => {
      struct.write(heap.views(), address);
      this.#add(number, bindings.createCache(address), config.batch);
    });
  }

  #fork(number: number, from: number, rows: Int32Array | undefined): void {
    const { bindings, registry } = this.#core;
    const origin = registry.addressOf('cache', from);
    if (rows === undefined) {
      const batch = registry.detailsOf<number>('cache', from);
      this.#add(number, bindings.forkCache(origin, 0, 0), batch);
      return;
    }
    this.#withIntegers(rows, (address) =>
      this.#add(number, bindings.forkCache(origin, address, rows.length), rows.length),
    );
  }

  #add(number: number, address: number, batch: number): void {
    const { bindings, registry, error } = this.#core;
    if (address === 0) throw error('the cache');
    registry.add('cache', number, address, (at) => bindings.destroyCache(at), batch);
  }

  #trim(number: number, lengths: Int32Array): void {
    const { bindings, registry, error } = this.#core;
    const cache = registry.addressOf('cache', number);
    this.#withIntegers(lengths, (address) => {
      if (bindings.trimCache(cache, address) !== 0) throw error('trim');
    });
  }

  #withIntegers(values: Int32Array, use: (address: number) => void): void {
    const { heap } = this.#core;
    heap.withBlock(values.byteLength, 'the cache', (address) => {
      heap.write(values, address);
      use(address);
    });
  }
}
