// Wasm: the key/value caches that live in the heap, by the numbers that their owners chose.
import { disposed, invalidValue } from '../errors.js';
import type { CacheConfig, CacheRequest, CacheStepRequest, Response } from '../request.js';
import type { Bindings, Layout } from './glue.js';
import type { Heap } from './heap.js';
import { setRope } from './operations.js';
import { Struct } from './struct.js';

interface Cache {
  address: number;
  batch: number;
}

export class Caches {
  readonly #bindings: Bindings;
  readonly #heap: Heap;
  readonly #error: (what: string) => Error;
  readonly #configStruct: Struct;
  readonly #caches = new Map<number, Cache>();

  /** `error` makes an error of the core's last status. */
  constructor(bindings: Bindings, heap: Heap, layout: Layout, error: (what: string) => Error) {
    this.#bindings = bindings;
    this.#heap = heap;
    this.#error = error;
    this.#configStruct = new Struct(layout, 'KeyValueCacheConfig');
  }

  run(request: CacheRequest): Response {
    switch (request.op) {
      case 'createCache':
        this.#create(request.cache, request.config);
        return {};
      case 'forkCache':
        this.#fork(request.cache, this.#cache(request.from), request.rows);
        return {};
      case 'trimCache':
        this.#trim(this.#cache(request.cache), request.lengths);
        return { lengths: this.lengths(request.cache) };
      case 'readCache':
        return { lengths: this.lengths(request.cache) };
      case 'destroyCache': {
        const cache = this.#caches.get(request.cache);
        if (cache !== undefined) this.#bindings.destroyCache(cache.address);
        this.#caches.delete(request.cache);
        return {};
      }
    }
  }

  /** The address of the cache that a step goes to, if it still is what the step was made for. */
  addressFor({ cache, starts }: CacheStepRequest): number {
    const { address } = this.#cache(cache);
    if (this.lengths(cache).some((length, b) => length !== starts[b])) {
      throw invalidValue(
        'k: an earlier call on this cache has failed, so these tokens would not stand where they belong',
      );
    }
    return address;
  }

  lengths(number: number): Int32Array {
    const { address, batch } = this.#cache(number);
    const at = (this.#bindings.cacheLengths(address) >>> 0) / 4;
    return new Int32Array(this.#heap.views().i32.subarray(at, at + batch));
  }

  #cache(number: number): Cache {
    const found = this.#caches.get(number);
    if (found === undefined) throw disposed('the cache');
    return found;
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
    this.#heap.withBlock(struct.size, 'the cache', (address) => {
      struct.write(this.#heap.views(), address);
      this.#add(number, this.#bindings.createCache(address), config.batch);
    });
  }

  #fork(number: number, from: Cache, rows: Int32Array | undefined): void {
    if (rows === undefined) {
      this.#add(number, this.#bindings.forkCache(from.address, 0, 0), from.batch);
      return;
    }
    this.#heap.withBlock(rows.byteLength, 'the cache', (address) => {
      this.#heap.views().i32.set(rows, address / 4);
      this.#add(number, this.#bindings.forkCache(from.address, address, rows.length), rows.length);
    });
  }

  #add(number: number, address: number, batch: number): void {
    if (address === 0) throw this.#error('the cache');
    this.#caches.set(number, { address: address >>> 0, batch });
  }

  #trim(cache: Cache, lengths: Int32Array): void {
    this.#heap.withBlock(lengths.byteLength, 'the cache', (address) => {
      this.#heap.views().i32.set(lengths, address / 4);
      if (this.#bindings.trimCache(cache.address, address) !== 0) throw this.#error('trim');
    });
  }
}
