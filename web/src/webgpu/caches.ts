// WebGPU: key/value caches that lie on the device: keys [B,G,capacity,D] and values [B,G,capacity,Dv] in float32, ready for the
// kernels. A step copies its own rows there and attends in place; nothing else moves. Lengths grow when a step is done, so that
// one that fails has appended nothing. Start reading at GpuCaches.step.
import type { Backend, Obstacle } from '../backend/backend.js';
import { aborted, disposed, invalidValue, outOfMemory } from '../errors.js';
import { whyNotOnGpu } from '../options/settings.js';
import { onHost, residentOf } from '../resident.js';
import type {
  AttentionRequest,
  CacheConfig,
  CacheRequest,
  CacheStepRequest,
  Response,
  Strides,
} from '../request.js';
import { arraysOfCache, whyTooLarge } from './array-bytes.js';
import type { AttentionSizes } from './attention.js';
import type { Buffers, Slice } from './buffers.js';
import type { Call } from './call.js';
import { addAttentionOf, bind, madeOf, type Context, type Made } from './compute.js';
import { gather } from './pieces.js';
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

interface Cache {
  config: CacheConfig;
  lengths: Int32Array;
  /** From the first step on. */
  keys: Slice | undefined;
  values: Slice | undefined;
  /** Why a fork came to nothing. */
  failure: unknown;
}

interface Tokens {
  counts: Int32Array;
  k: Float32Array;
  v: Float32Array;
  kStrides: Strides;
  vStrides: Strides;
  q: Float32Array | undefined;
}

// What a step is given besides the settings of the table of options.
const stepFields = new Set<string>([
  'op',
  'batch',
  'heads',
  'queries',
  'keys',
  'cache',
  'starts',
  'kvHeads',
  'headDim',
  'valueDim',
  'scale',
  'q',
  'k',
  'v',
  'qStrides',
  'kStrides',
  'vStrides',
  'outStrides',
] satisfies (keyof CacheStepRequest)[]);

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
      const tokens = await this.#tokensOf(cache, request);
      const lengths = cache.lengths.map((length, b) => length + (tokens.counts[b] as number));
      const response = await this.#withMemory(cache, (call) =>
        this.#appendAndAttend(call, cache, request, tokens, lengths, check),
      );
      const result =
        response ?? (await this.#attendOnCore(cache, request, tokens, lengths, signal));
      cache.lengths = lengths;
      return { ...result, lengths: lengths.slice() };
    };
    return this.#device.queue(work, 'cacheStep', signal);
  }

  /** The new tokens, turned where the cache turns, and those on this side packed. */
  async #tokensOf({ config, lengths }: Cache, request: CacheStepRequest): Promise<Tokens> {
    const { batch, heads, kvHeads, queries, headDim, valueDim } = request;
    const counts = request.qLengths ?? new Int32Array(batch).fill(queries);
    let { q, k } = request;
    const { v } = request;
    if (config.rope !== undefined && queries > 0) {
      const rope = config.rope;
      const positions = new Int32Array(batch * queries);
      positions.forEach((_, n) => {
        positions[n] = (lengths[Math.floor(n / queries)] as number) + (n % queries);
      });
      const rotated = async (
        x: Float32Array,
        strides: Strides,
        ofHeads: number,
      ): Promise<Float32Array> => {
        const { output } = await this.#core.run({
          op: 'rotaryEmbedding',
          ...rope,
          batch,
          heads: ofHeads,
          rows: queries,
          size: headDim,
          x: (await onHost(x))[0],
          strides,
          offset: 0,
          positions: { data: positions, batchStride: queries },
        });
        return output as Float32Array;
      };
      k = await rotated(k, request.kStrides, kvHeads);
      if (q !== undefined) q = await rotated(q, request.qStrides as Strides, heads);
    }
    // A token's row is one copy on the device, a packed head's rows are one altogether.
    const packed = (
      x: Float32Array,
      strides: Strides,
      size: number,
    ): { data: Float32Array; strides: Strides } => {
      if (residentOf(x) !== undefined || strides[2] === size) return { data: x, strides };
      const all = (end: number) => ({ first: 0, end });
      return {
        data: gather(x, strides, size, all(batch), all(kvHeads), all(queries)),
        strides: [kvHeads * queries * size, queries * size, size],
      };
    };
    const keys = packed(k, request.kStrides, headDim);
    const values = packed(v, request.vStrides, valueDim);
    return {
      ...{ counts, q, k: keys.data, v: values.data },
      ...{ kStrides: keys.strides, vStrides: values.strides },
    };
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
      if (queries === 0) return;
      this.#append(call, cache, bind(call, tokens.k), cache.keys as Slice, {
        strides: tokens.kStrides,
        size: config.headDim,
        counts: tokens.counts,
      });
      this.#append(call, cache, bind(call, tokens.v), cache.values as Slice, {
        strides: tokens.vStrides,
        size: config.valueDim,
        counts: tokens.counts,
      });
    });
    if (q === undefined) {
      await call.finish(dispatchWork, check);
      return {};
    }
    const sizes = sizesOf(config, request, lengths, cache.lengths);
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
    const sizes = sizesOf(cache.config, request, lengths, cache.lengths);
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

/** The attention of a step. Query i of row b stands at starts[b] + i. */
function sizesOf(
  { kvHeads, capacity, headDim, valueDim }: CacheConfig,
  request: CacheStepRequest,
  lengths: Int32Array,
  starts: Int32Array,
): AttentionSizes {
  const { op: _op, cache: _cache, starts: _starts, q: _q, k: _k, v: _v, ...settings } = request;
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
