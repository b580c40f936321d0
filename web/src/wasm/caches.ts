// Wasm: the key/value caches that live in the heap, by the numbers that their owners chose.
import { invalidShape, invalidValue } from '../errors.js';
import type { CacheConfig, CacheRequest, CacheStepRequest, Response } from '../request.js';
import type { CoreParts } from './objects.js';
import { withConfig } from './rope.js';
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
      case 'dropTokens':
        this.#drop(request.cache, request.begins, request.ends);
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
    return this.#integersAt(this.#core.bindings.cacheLengths, number);
  }

  /** What only the core knows of a step that it refuses: the positions that follow, and what a ring has lost. */
  whyRefused({ cache, positions }: CacheStepRequest, argument: string): Error | undefined {
    const { rope, window } = this.#core.registry.detailsOf<CacheConfig>('cache', cache);
    if (argument === 'positions' && rope?.tables !== undefined) {
      const own = positions === undefined ? 'that follow in the text ' : '';
      return invalidValue(
        `positions: some ${own}are outside rope's tables; 0 … ${rope.tables.rows - 1} wanted`,
      );
    }
    if (argument !== 'q' || window === 0) return undefined;
    return invalidShape(
      `q: fewer queries wanted, the ring has lost keys that the first ones' window of ${window} has`,
    );
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
    struct.set('sink_positions', config.sinkPositions);
    const { bindings, heap } = this.#core;
    withConfig(heap, struct, config.rope, 'the cache', (address) => {
      this.#add(number, bindings.createCache(address), config);
    });
  }

  #fork(number: number, from: number, rows: Int32Array | undefined): void {
    const { bindings, registry } = this.#core;
    const origin = registry.addressOf('cache', from);
    const config = registry.detailsOf<CacheConfig>('cache', from);
    if (rows === undefined) {
      this.#add(number, bindings.forkCache(origin, 0, 0), config);
      return;
    }
    this.#withIntegers([rows], ([address]) =>
      this.#add(number, bindings.forkCache(origin, address as number, rows.length), {
        ...config,
        batch: rows.length,
      }),
    );
  }

  #add(number: number, address: number, config: CacheConfig): void {
    const { bindings, registry, error } = this.#core;
    if (address === 0) throw error('the cache');
    registry.add('cache', number, address, (at) => bindings.destroyCache(at), config);
  }

  #trim(number: number, lengths: Int32Array): void {
    const { bindings, error, registry } = this.#core;
    const cache = registry.addressOf('cache', number);
    this.#withIntegers([lengths], ([address]) => {
      if (bindings.trimCache(cache, address as number) === 0) return;
      throw this.#lostError(number, 'length', lengths, lengths) ?? error('trim');
    });
  }

  #drop(number: number, begins: Int32Array, ends: Int32Array): void {
    const { bindings, error, registry } = this.#core;
    const cache = registry.addressOf('cache', number);
    this.#withIntegers([begins, ends], ([first, last]) => {
      if (bindings.dropTokens(cache, first as number, last as number) === 0) return;
      const rests = this.lengths(number).map(
        (length, b) => length - (ends[b] as number) + (begins[b] as number),
      );
      throw this.#lostError(number, 'begin', begins, rests) ?? error('drop');
    });
  }

  // Validation has looked at all but what a ring has lost. `places`: what was asked for; `rests`: the lengths it would leave.
  #lostError(
    number: number,
    argument: 'length' | 'begin',
    places: Int32Array,
    rests: Int32Array,
  ): Error | undefined {
    const { bindings, registry } = this.#core;
    if (bindings.statusArgument() !== argument) return undefined;
    const { window, sinkTokens } = registry.detailsOf<CacheConfig>('cache', number);
    const held = this.#integersAt(bindings.cacheHeldFrom, number);
    const b = rests.findIndex((rest, row) => {
      const from = held[row] as number;
      return from > sinkTokens && ((places[row] as number) < from || rest - window < from);
    });
    return invalidValue(
      `${argument}: for row ${b} one wanted that leaves the last ${window} tokens of those before it, got ${places[b]}; ` +
        `its ring has come round and has tokens from ${held[b]} on${sinkTokens > 0 ? ' and the sink tokens' : ''}`,
    );
  }

  #integersAt(addressOf: (cache: number) => number, number: number): Int32Array {
    const { heap, registry } = this.#core;
    const at = (addressOf(registry.addressOf('cache', number)) >>> 0) / 4;
    const { batch } = registry.detailsOf<CacheConfig>('cache', number);
    return new Int32Array(heap.views().i32.subarray(at, at + batch));
  }

  #withIntegers(arrays: readonly Int32Array[], use: (addresses: number[]) => void): void {
    const { heap } = this.#core;
    const bytes = arrays.reduce((sum, { byteLength }) => sum + byteLength, 0);
    heap.withBlock(bytes, 'the cache', (address) => {
      let at = address;
      use(
        arrays.map((values) => {
          const place = at;
          heap.write(values, place);
          at += values.byteLength;
          return place;
        }),
      );
    });
  }
}
