// WebGPU: key/value caches that lie on the device: keys [B,G,capacity,D] and values [B,G,capacity,Dv] in float32, ready for the
// kernels. A step copies its own rows there and attends in place; nothing else moves. Lengths grow when a step is done, so that
// one that fails has appended nothing. Start reading at GpuCaches.step.
import type { Backend, Obstacle } from '../backend/backend.js';
import { aborted, disposed, invalidValue, outOfMemory } from '../errors.js';
import { whyNotOnGpu } from '../options/settings.js';
import { onHost } from '../resident.js';
import { largest } from '../validation/shapes.js';
import type {
  AttentionRequest,
  CacheConfig,
  CacheRequest,
  CacheStepRequest,
  Response,
  Strides,
} from '../request.js';
import { arraysOfCache, whyTooLarge } from './array-bytes.js';
import { attentionFields, type AttentionSizes } from './attention.js';
import type { Buffers, Slice } from './buffers.js';
import type { Call } from './call.js';
import { addAttentionOf, bind, madeOf, type Context, type Made } from './compute.js';
import {
  keepPositions,
  positionsOf,
  tokensOf,
  type CachedTokens,
  type Tokens,
} from './cache-tokens.js';
import { fitsWhole } from './split.js';

/** What a cache needs of its GPU. */
export interface CacheDevice {
  context: Context;
  buffers: Buffers;
  /** In turn; one that waits rejects at once when the signal aborts. */
  queue<T>(work: () => Promise<T>, op?: string, signal?: AbortSignal): Promise<T>;
  withCall<T>(work: (call: Call) => Promise<T>): Promise<T>;
  /** Throws when the device is gone. */
  check(): void;
  collect(
    call: Call,
    made: readonly Made[],
    request: CacheStepRequest,
    check: () => void,
  ): Promise<Response>;
  /** A response's arrays, put on the device. */
  toDevice(response: Response): Promise<Response>;
}

interface Cache extends CachedTokens {
  /** From the first step on. */
  keys: Slice | undefined;
  values: Slice | undefined;
  /** Why a fork came to nothing. */
  failure: unknown;
}

// What a step is given besides the settings of the table of options.
const stepFields = new Set<string>([
  ...attentionFields,
  ...(['cache', 'starts', 'positions'] satisfies (keyof CacheStepRequest)[]),
]);

export class GpuCaches {
  readonly #device: CacheDevice;
  readonly #core: Pick<Backend, 'run'>;
  readonly #caches = new Map<number, Cache>();

  /** `core` rotates new tokens and attends where the kernels cannot. */
  constructor(device: CacheDevice, core: Pick<Backend, 'run'>) {
    this.#device = device;
    this.#core = core;
  }

  /** Why a cache cannot lie here, or undefined. */
  whyNot(config: CacheConfig): Obstacle | undefined {
    if (config.cellType !== 0) return { reason: "only caches with dtype 'f32' lie on the GPU" };
    if (config.window > 0) return { reason: 'caches with a window do not lie on the GPU' };
    return whyTooLarge(arraysOfCache(config), this.#device.context.limits);
  }

  /** At once, all but the memory, which is taken in turn. */
  run(request: CacheRequest): Promise<Response> {
    switch (request.op) {
      case 'createCache':
        this.#add(request.cache, request.config);
        return Promise.resolve({});
      case 'forkCache':
        return this.#fork(request.cache, this.#get(request.from), request.rows);
      case 'trimCache':
        return this.#inTurn(request.cache, (cache) => {
          cache.lengths = request.lengths.slice();
        });
      case 'dropTokens':
        return this.#drop(this.#get(request.cache), request.begins, request.ends);
      case 'readCache':
        return this.#inTurn(request.cache, () => undefined);
    }
  }

  /** Frees a cache, if it is one, once the calls made so far are done. */
  destroy(number: number): Promise<Response> {
    const cache = this.#caches.get(number);
    if (cache === undefined) return Promise.resolve({});
    this.#caches.delete(number);
    return this.#device.queue(() => {
      for (const slice of [cache.keys, cache.values])
        if (slice !== undefined) this.#device.buffers.give(slice);
      return Promise.resolve({});
    });
  }

  #add(number: number, config: CacheConfig): Cache {
    const cache: Cache = {
      config,
      lengths: new Int32Array(config.batch),
      positions: new Int32Array(config.rope === undefined ? 0 : config.batch * config.capacity),
      keys: undefined,
      values: undefined,
      failure: undefined,
    };
    this.#caches.set(number, cache);
    return cache;
  }

  #get(number: number): Cache {
    const cache = this.#caches.get(number);
    if (cache === undefined) throw disposed('the cache');
    return cache;
  }

  #inTurn(number: number, work: (cache: Cache) => void): Promise<Response> {
    const cache = this.#get(number);
    return this.#device.queue(() => {
      this.#device.check();
      work(cache);
      return Promise.resolve({ lengths: cache.lengths.slice() });
    });
  }

  #allocate(call: Call, cache: Cache): void {
    if (cache.keys !== undefined) return;
    const [keys, values] = arraysOfCache(cache.config);
    cache.keys = call.take('storage', keys.bytes);
    cache.values = call.take('storage', values.bytes);
  }

  #keep(call: Call, cache: Cache): void {
    for (const slice of [cache.keys, cache.values]) if (slice !== undefined) call.keep(slice);
  }

  /** Runs `work`, which may allocate; what was allocated goes again when it fails. */
  async #withMemory<T>(cache: Cache, work: (call: Call) => Promise<T>): Promise<T> {
    const { keys, values } = cache;
    try {
      return await this.#device.withCall(async (call) => {
        const result = await work(call);
        this.#keep(call, cache);
        return result;
      });
    } catch (error) {
      cache.keys = keys;
      cache.values = values;
      throw error;
    }
  }

  #fork(number: number, from: Cache, rows: Int32Array | undefined): Promise<Response> {
    const { config } = from;
    const order = rows ?? Int32Array.from({ length: config.batch }, (_, b) => b);
    const cache = this.#add(number, { ...config, batch: order.length });
    const made = this.#device.queue(async () => {
      this.#device.check();
      cache.lengths = order.map((b) => from.lengths[b] as number);
      order.forEach((b, n) => positionsOf(cache, n).set(positionsOf(from, b)));
      if (from.keys === undefined) return {};
      const tooLarge = this.whyNot(cache.config);
      if (tooLarge !== undefined)
        throw outOfMemory(
          'fork',
          arraysOfCache(cache.config)[0].bytes,
          this.#device.context.limits.bindingBytes,
        );
      return this.#withMemory(cache, async (call) => {
        call.guard(() => {
          this.#allocate(call, cache);
          for (const part of ['keys', 'values'] as const) {
            const [keys, values] = arraysOfCache({ ...config, batch: 1 });
            const rowBytes = (part === 'keys' ? keys : values).bytes;
            order.forEach((b, n) =>
              call.copyFirst(
                { slice: from[part] as Slice, offset: b * rowBytes },
                { slice: cache[part] as Slice, offset: n * rowBytes },
                rowBytes,
              ),
            );
          }
        });
        await call.finish(1, () => undefined);
        return {};
      });
    });
    made.catch((error: unknown) => {
      cache.failure = error;
    });
    return made;
  }

  // What moves up goes by a buffer of its own, because no copy is within one.
  #drop(cache: Cache, begins: Int32Array, ends: Int32Array): Promise<Response> {
    return this.#device.queue(async () => {
      this.#device.check();
      const { config, lengths, keys, values } = cache;
      const { kvHeads, capacity, headDim, valueDim } = config;
      const rests = lengths.map((own, b) => own - (ends[b] as number) + (begins[b] as number));
      const moving = rests.map((rest, b) => rest - (begins[b] as number));
      const most = largest(moving);
      if (most > 0 && keys !== undefined && values !== undefined) {
        await this.#device.withCall(async (call) => {
          call.guard(() => {
            const between = call.take('storage', most * Math.max(headDim, valueDim) * 4);
            for (let head = 0; head < config.batch * kvHeads; head++) {
              const b = Math.floor(head / kvHeads);
              const count = moving[b] as number;
              if (count === 0 || begins[b] === ends[b]) continue;
              for (const [slice, size] of [
                [keys, headDim],
                [values, valueDim],
              ] as const) {
                const at = (place: number): number => (head * capacity + place) * size * 4;
                const bytes = count * size * 4;
                const there = { slice: between, offset: 0 };
                call.copyFirst({ slice, offset: at(ends[b] as number) }, there, bytes);
                call.copyFirst(there, { slice, offset: at(begins[b] as number) }, bytes);
              }
            }
          });
          await call.finish(1, () => undefined);
        });
      }
      moving.forEach((_, b) => {
        const positions = positionsOf(cache, b);
        positions.copyWithin(begins[b] as number, ends[b] as number, lengths[b] as number);
      });
      cache.lengths = rests;
      return { lengths: rests.slice() };
    });
  }

  /** Appends, and attends where there are queries. The request's arrays must not change until it settles. */
  step(request: CacheStepRequest, signal: AbortSignal | undefined): Promise<Response> {
    const cache = this.#get(request.cache);
    const check = (): void => {
      this.#device.check();
      if (signal?.aborted === true) throw aborted('cacheStep', signal.reason);
    };
    const work = async (): Promise<Response> => {
      check();
      if (cache.failure !== undefined) throw cache.failure as Error;
      if (cache.lengths.some((length, b) => length !== request.starts[b])) {
        throw invalidValue(
          'k: an earlier call on this cache has failed, so these tokens would not stand where they belong',
        );
      }
      const tokens = await tokensOf(this.#core, cache, request);
      const lengths = cache.lengths.map((length, b) => length + (tokens.added[b] as number));
      const response = await this.#withMemory(cache, (call) =>
        this.#appendAndAttend(call, cache, request, tokens, lengths, check),
      );
      const result =
        response ?? (await this.#attendOnCore(cache, request, tokens, lengths, signal));
      keepPositions(cache, tokens);
      cache.lengths = lengths;
      return { ...result, lengths: lengths.slice() };
    };
    return this.#device.queue(work, 'cacheStep', signal);
  }

  /** Undefined when the kernels cannot attend so: then the tokens have been copied, and that is all. */
  async #appendAndAttend(
    call: Call,
    cache: Cache,
    request: CacheStepRequest,
    tokens: Tokens,
    lengths: Int32Array,
    check: () => void,
  ): Promise<Response | undefined> {
    const { config } = cache;
    const { dispatchWork, bindingBytes } = this.#device.context.limits;
    const { queries } = request;
    const { q } = tokens;
    call.guard(() => {
      this.#allocate(call, cache);
      const { k, v, added } = tokens;
      if (queries === 0 || k === undefined || v === undefined) return;
      this.#append(call, cache, bind(call, k.data), cache.keys as Slice, {
        strides: k.strides,
        size: config.headDim,
        counts: added,
      });
      this.#append(call, cache, bind(call, v.data), cache.values as Slice, {
        strides: v.strides,
        size: config.valueDim,
        counts: added,
      });
    });
    if (q === undefined) {
      await call.finish(dispatchWork, check);
      return {};
    }
    const sizes = sizesOf(config, request, lengths, tokens.starts);
    const elements = config.batch * request.heads * queries * config.valueDim;
    const fits = elements * request.keys > 0 && fitsWhole(sizes, bindingBytes);
    if (!fits || whyNotOnGpu(request, stepFields) !== undefined) {
      await call.finish(dispatchWork, check);
      return undefined;
    }
    const slices = await addAttentionOf(this.#device.context, call, sizes, () => [
      bind(call, q),
      cache.keys as Slice,
      cache.values as Slice,
    ]);
    const made = madeOf(sizes, slices, elements);
    return this.#device.collect(call, made, request, check);
  }

  #append(
    call: Call,
    { config, lengths }: Cache,
    from: Slice,
    to: Slice,
    { strides, size, counts }: { strides: Strides; size: number; counts: Int32Array },
  ): void {
    const { batch, kvHeads, capacity } = config;
    for (let b = 0; b < batch; b++) {
      const count = counts[b] as number;
      for (let g = 0; g < kvHeads && count > 0; g++) {
        const source = b * strides[0] + g * strides[1];
        const target = ((b * kvHeads + g) * capacity + (lengths[b] as number)) * size;
        const runs = strides[2] === size ? 1 : count;
        for (let r = 0; r < runs; r++) {
          call.copyFirst(
            { slice: from, offset: (source + r * strides[2]) * 4 },
            { slice: to, offset: (target + r * size) * 4 },
            (count / runs) * size * 4,
          );
        }
      }
    }
  }

  // The tokens are there already. What is fetched is the whole cache, which is rare enough.
  async #attendOnCore(
    cache: Cache,
    request: CacheStepRequest,
    tokens: Tokens,
    lengths: Int32Array,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const [keys, values] = arraysOfCache(cache.config);
    const fetched = await this.#device.withCall(async (call) => {
      const downloads = call.guard(() => [
        call.download(cache.keys as Slice, 0, keys.bytes),
        call.download(cache.values as Slice, 0, values.bytes),
      ]);
      await call.finish(1, () => undefined);
      return Promise.all(downloads.map((download) => call.read(download)));
    });
    const sizes = sizesOf(cache.config, request, lengths, tokens.starts);
    const response = await this.#core.run(
      {
        ...sizes,
        op: 'attention',
        q: (await onHost(tokens.q as Float32Array))[0],
        k: fetched[0] as Float32Array,
        v: fetched[1] as Float32Array,
        resident: false,
      } satisfies AttentionRequest,
      signal,
    );
    return request.resident === true ? this.#device.toDevice(response) : response;
  }
}

/** The attention of a step. Query i of row b stands at place starts[b] + i. */
function sizesOf(
  { kvHeads, capacity, headDim, valueDim }: CacheConfig,
  request: CacheStepRequest,
  lengths: Int32Array,
  starts: Int32Array,
): AttentionSizes {
  const {
    op: _op,
    cache: _cache,
    starts: _starts,
    q: _q,
    k: _k,
    v: _v,
    positions: _p,
    ...settings
  } = request;
  return {
    ...settings,
    kvLengths: lengths,
    causalOffsets: starts.slice(),
    qStrides: request.qStrides as Strides,
    outStrides: request.outStrides as Strides,
    kStrides: [kvHeads * capacity * headDim, capacity * headDim, headDim],
    vStrides: [kvHeads * capacity * valueDim, capacity * valueDim, valueDim],
  };
}
