/// <reference lib="esnext.disposable" preserve="true" />
// Public: the key/value cache for decoding. Keys and values live in the core or on the GPU; this object knows their shape, a number, and how
// long its rows will be once all calls made so far are done.
import type { TensorLike } from './tensor-like.js';
import type { IntegersLike } from './tensor-types.js';
import { unsupported } from './errors.js';
import { Handle, type HandleOwner } from './handle.js';
import type { CacheConfig, CacheRequest, Response } from './request.js';
import {
  attentionResult,
  throwIfAborted,
  type AttentionResultOf,
  type OptionsOf,
} from './results.js';
import {
  readAppend,
  readAttend,
  readDrop,
  readFork,
  readTrim,
  typeOf,
  type AppendOptions,
  type AttendOptions,
  type CacheState,
  type CacheType,
  type CheckedStep,
} from './validation/kv-cache.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/** Keys and values of a growing text. Made by `engine.createKVCache`. */
export class KVCache {
  readonly #owner: HandleOwner;
  readonly #handle: Handle;
  readonly #config: CacheConfig;
  #lengths: Int32Array;
  #pending = 0;

  /** Use `engine.createKVCache`, or `fork`. @internal */
  constructor(
    owner: HandleOwner,
    config: CacheConfig,
    origin?: { cache: number; rows: Int32Array | undefined; lengths: Int32Array; queued: boolean },
  ) {
    this.#owner = owner;
    this.#config = config;
    this.#lengths = origin?.lengths ?? new Int32Array(config.batch);
    this.#handle = new Handle(
      owner,
      'cache',
      (cache) => {
        if (origin === undefined) return { op: 'createCache', cache, config };
        const { rows } = origin;
        const fork = { op: 'forkCache', cache, from: origin.cache } as const;
        return rows === undefined ? fork : { ...fork, rows };
      },
      origin?.queued,
    );
  }

  /** B. */
  get batch(): number {
    return this.#config.batch;
  }

  /** Tokens that a row holds; with a window, slots. */
  get capacity(): number {
    return this.#config.capacity;
  }

  /** What numbers are kept as. */
  get dtype(): CacheType {
    return typeOf(this.#config);
  }

  /**
   * How many tokens each row has, one number a row: what all calls made so far lead to. After a call that failed they are what
   * the cache really holds once the call has rejected. With a window, tokens that the ring has dropped count as well.
   */
  get lengths(): number[] {
    return Array.from(this.#lengths);
  }

  #state(): CacheState {
    this.#handle.check();
    return { cache: this.#handle.number, config: this.#config, lengths: this.#lengths };
  }

  /**
   * Appends L tokens to each row, or `lengths` of them. The cost depends on L alone, not on what is there already.
   *
   * @param k `[B,G,L,D]`, with layout 'blhd' `[B,L,G,D]`, of rank 3 `[B,L,G·D]`, of rank 2 `[L,D]`.
   * @param v values, likewise with Dv.
   * @throws as `engine.attention`; RangeError `INVALID_SHAPE` when the cache is full, that is, when a row would have more tokens
   * than its capacity: it is k that has too many of them, and more memory would not help. Nothing has been appended then.
   */
  async append(k: TensorLike, v: TensorLike, options?: AppendOptions): Promise<void> {
    await this.#step(readAppend(this.#state(), k, v, options));
  }

  /** {@link KVCache.append}, at once. `UNSUPPORTED` where the engine lives in a worker, or while a call on this cache runs. */
  appendSync(k: TensorLike, v: TensorLike, options?: AppendOptions): void {
    this.#stepSync(readAppend(this.#state(), k, v, options));
  }

  /**
   * Appends tokens as `append` does, and attends by their queries to all keys up to themselves: one token at a time, a prompt at
   * once, or in chunks, with the same result as one causal pass over the whole text.
   *
   * A call that is aborted or fails has appended nothing. (With a window, L above capacity − sinkTokens − window + 1 goes piece by
   * piece, and the pieces that are done stay; `lengths` says how many.)
   *
   * Without keys and values it reads what is there and appends nothing, as cross-attention to an encoder's output wants: L queries of
   * any number, `lengths` of them in each row. They stand at the row's end, the last one at its last token, which matters with
   * `causal` (by default false then), windows, ALiBi and rope. With the cache's window a query whose window the ring has lost
   * a part of is an `INVALID_SHAPE`.
   *
   * @param q `[B,H,L,D]` and so on, in k's rank and layout; G divides H. Rows past `lengths` come out 0.
   * @param k new keys, or undefined; v likewise.
   * @returns `output` in q's layout, and what else was asked for.
   * @throws as `append`.
   */
  async attend<O extends AttendOptions>(
    q: TensorLike,
    k?: TensorLike,
    v?: TensorLike,
    options?: OptionsOf<O, AttendOptions>,
  ): Promise<AttentionResultOf<O>> {
    const call = readAttend(this.#state(), q, k, v, options);
    return attentionResult(call, await this.#step(call)) as AttentionResultOf<O>;
  }

  /** {@link KVCache.attend}, at once. `UNSUPPORTED` where the engine lives in a worker, or while a call on this cache runs. */
  attendSync<O extends AttendOptions>(
    q: TensorLike,
    k?: TensorLike,
    v?: TensorLike,
    options?: OptionsOf<O, AttendOptions>,
  ): AttentionResultOf<O> {
    const call = readAttend(this.#state(), q, k, v, options);
    return attentionResult(call, this.#stepSync(call)) as AttentionResultOf<O>;
  }

  /**
   * Forgets all tokens behind the first `length` of each row (rows that are shorter stay), or behind a length for each row `[B]`.
   * Takes effect after the calls made so far.
   *
   * @throws RangeError `INVALID_VALUE` for a length above what is there, or where a ring has lost a token that would be among the last
   * `window`, which the shorter text needs; a capacity beyond sinkTokens + window is room for tokens that are taken back.
   */
  async trim(length: number | IntegersLike): Promise<void> {
    await this.#trim(readTrim(this.#state(), length));
  }

  /** {@link KVCache.trim}, at once. `UNSUPPORTED` as for `appendSync`. */
  trimSync(length: number | IntegersLike): void {
    this.#trimSync(readTrim(this.#state(), length));
  }

  /**
   * Takes the tokens at places begin … end − 1 out of each row (rows that are shorter lose what they have there), or of a place for each
   * row `[B]`. Those behind move up. With rope they keep the positions that they were turned by, and new tokens' positions follow
   * that of the last one that is left: so the rejected branches of a tree of drafts go, and the accepted one stays. Costs as
   * much as what moves. Takes effect after the calls made so far.
   *
   * @throws RangeError `INVALID_VALUE` unless 0 ≤ begin ≤ end ≤ length, or where a ring has lost a token that would move up, or that
   * would be among the last `window`.
   */
  async drop(begin: number | IntegersLike, end: number | IntegersLike): Promise<void> {
    const { begins, ends, rests } = readDrop(this.#state(), begin, end);
    await this.#leave({ op: 'dropTokens', cache: this.#handle.number, begins, ends }, rests);
  }

  /** {@link KVCache.drop}, at once. `UNSUPPORTED` as for `appendSync`. */
  dropSync(begin: number | IntegersLike, end: number | IntegersLike): void {
    const { begins, ends, rests } = readDrop(this.#state(), begin, end);
    this.#leaveSync({ op: 'dropTokens', cache: this.#handle.number, begins, ends }, rests);
  }

  /** Forgets everything, after the calls made so far. The memory stays. */
  async reset(): Promise<void> {
    this.#state();
    await this.#trim(new Int32Array(this.#config.batch));
  }

  /** {@link KVCache.reset}, at once. `UNSUPPORTED` as for `appendSync`. */
  resetSync(): void {
    this.#state();
    this.#trimSync(new Int32Array(this.#config.batch));
  }

  /**
   * A copy that goes its own way, as for beam search or a shared prefix, taken after the calls made so far. It takes as much
   * memory as this one, and is to be disposed of like it.
   *
   * @param options `rows`: which rows the copy has, in order, each any number of times (integers, 0…B−1). Default all of them.
   * @throws as `createKVCache`.
   */
  fork(options?: { rows?: IntegersLike | undefined }): KVCache {
    const { cache, config, lengths } = this.#state();
    const rows = readFork(config, options);
    return new KVCache(
      this.#owner,
      rows === undefined ? config : { ...config, batch: rows.length },
      {
        cache,
        rows,
        lengths: rows === undefined ? lengths.slice() : rows.map((row) => lengths[row] as number),
        queued: this.#pending > 0 || this.#handle.isQueued,
      },
    );
  }

  /** Frees the memory once calls in progress are done; the object is of no use afterwards. May be called again. */
  dispose(): void {
    this.#handle.dispose();
  }

  /** {@link KVCache.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  async #step({ request, counts, signal }: CheckedStep): Promise<Response> {
    const running = this.#handle.run(request, signal);
    this.#lengths = this.#lengths.map((length, b) => length + (counts[b] as number));
    return this.#settle(running);
  }

  async #trim(lengths: Int32Array): Promise<void> {
    await this.#leave({ op: 'trimCache', cache: this.#handle.number, lengths }, lengths);
  }

  #trimSync(lengths: Int32Array): void {
    this.#leaveSync({ op: 'trimCache', cache: this.#handle.number, lengths }, lengths);
  }

  // Tokens go; `rests` are the lengths that are left.
  async #leave(request: CacheRequest, rests: Int32Array): Promise<void> {
    const running = this.#handle.run(request);
    this.#lengths = rests.slice();
    await this.#settle(running);
  }

  #leaveSync(request: CacheRequest, rests: Int32Array): void {
    this.#checkIdle();
    this.#handle.runSync(request);
    this.#lengths = rests.slice();
  }

  async #settle(running: Promise<Response>): Promise<Response> {
    this.#pending++;
    try {
      return await running;
    } catch (error) {
      await this.#readLengths();
      throw error;
    } finally {
      this.#pending--;
    }
  }

  // After a failure: what the cache really holds. With more calls on their way each of them fails too, and reads again.
  async #readLengths(): Promise<void> {
    try {
      const request = { op: 'readCache', cache: this.#handle.number } as const;
      const { lengths } = await this.#owner.host.run(request);
      if (lengths !== undefined) this.#lengths = lengths;
    } catch {
      // The cache or the engine is gone, and the call's own error says so.
    }
  }

  #checkIdle(): void {
    if (this.#pending > 0) {
      throw unsupported(
        'synchronous calls on a cache while an asynchronous one on it is in progress: await that one first',
      );
    }
  }

  #stepSync(call: CheckedStep): Response {
    throwIfAborted(call);
    this.#checkIdle();
    const response = this.#handle.runSync(call.request, call.out);
    this.#lengths = response.lengths as Int32Array;
    return response;
  }
}
