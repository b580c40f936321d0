/// <reference lib="esnext.disposable" preserve="true" />
// Public: a target that a Transformer reads a few tokens at a time. What has been read lives in the core; this object knows a
// number, and how long the target will be once all calls made so far are done.
import type { IntegersLike } from '../tensor-types.js';
import { disposed, invalidShape, invalidValue } from '../errors.js';
import type { TransformerBatch, TransformerDecodeRequest } from '../request.js';
import { Tensor } from '../tensor.js';
import { readInteger, readOptions, readSignal } from '../validation/options.js';
import type { Host } from '../wasm/host.js';
import { readTokens } from './batch.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/** What a decoding needs of its model. */
export interface DecodingOwner {
  /** Throws when the model or its engine has been disposed. */
  alive(): Host;
  model: number;
  decoding: number;
  vocabulary: number;
}

// A net for decodings that are dropped without dispose(): memory that is not JavaScript's own is not collected by itself.
const dropped = /* @__PURE__ */ new FinalizationRegistry<{ host: Host; decoding: number }>(
  ({ host, decoding }) => destroy(host, decoding),
);

function destroy(host: Host, decoding: number): void {
  // An engine that is gone has freed it already.
  host.run({ op: 'destroyDecoding', decoding }).catch(() => undefined);
}

/**
 * Targets that are read a few tokens at a time: keys and values of what has been read are kept, so that a token costs what it
 * costs itself, however long the target is. Made by `Transformer.decoding`; for text from a model, `generate` is shorter.
 */
export class TransformerDecoding {
  /** Tokens that a target may have. */
  readonly capacity: number;
  readonly #owner: DecodingOwner;
  readonly #host: Host;
  // Sent with the first tokens.
  readonly #source: Omit<TransformerBatch, 'batch' | 'targetLength'>;
  readonly #created: Promise<unknown>;
  #failure: unknown;
  #rows: number;
  #length = 0;
  #disposed = false;

  /** Use `Transformer.decoding`. @internal */
  constructor(
    owner: DecodingOwner,
    source: Omit<TransformerBatch, 'batch' | 'targetLength'>,
    rows: number,
    capacity: number,
  ) {
    const { model, decoding } = owner;
    this.#owner = owner;
    this.#source = source;
    this.#rows = rows;
    this.capacity = capacity;
    this.#host = owner.alive();
    this.#created = this.#host
      .run({ op: 'createDecoding', decoding, model, rows, capacity })
      .catch((error: unknown) => {
        this.#failure = error;
      });
    dropped.register(this, { host: this.#host, decoding }, this);
  }

  /** How many targets there are. */
  get rows(): number {
    return this.#rows;
  }

  /** Tokens read of each target: what all calls made so far lead to. */
  get length(): number {
    return this.#length;
  }

  #alive(): Host {
    if (this.#disposed) throw disposed('the decoding');
    return this.#owner.alive();
  }

  /**
   * Reads the targets' next tokens, n of each row: the whole prompt at first, one by one later. A call that is aborted or fails
   * has read nothing.
   *
   * @param tokens `[rows,n]`.
   * @returns the logits behind the last of them, `[rows,targetVocabulary]`: those that `forward` gives for the whole target.
   * @throws RangeError `INVALID_SHAPE` for more tokens than there is room for, `INVALID_VALUE` for one out of range.
   */
  async read(
    tokens: IntegersLike,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<Tensor> {
    const host = this.#alive();
    const { vocabulary, model, decoding } = this.#owner;
    const { data, shape } = readTokens('tokens', tokens, vocabulary);
    const given = readOptions('options', options, new Set(['signal']));
    const signal = readSignal('signal', given.signal);
    const [rows, count] = shape;
    if (rows !== this.#rows || count < 1)
      throw invalidShape(`tokens: shape [${this.#rows},n] wanted, got [${shape}]`);
    if (this.#length + count > this.capacity) {
      throw invalidShape(
        `tokens: room for ${this.capacity - this.#length} of capacity ${this.capacity} is left, got ${count}`,
      );
    }
    const request: TransformerDecodeRequest = {
      ...(this.#length === 0 ? this.#source : { sourceLength: 0 }),
      op: 'transformerDecode',
      model,
      decoding,
      start: this.#length,
      batch: rows,
      targetLength: count,
      target: data,
      logits: rows * vocabulary,
    };
    // The request goes out before anything is awaited, so that calls keep their order.
    const running = host.run(request, signal);
    this.#length += count;
    try {
      return new Tensor((await running).output as Float32Array, [rows, vocabulary]);
    } catch (error) {
      this.#length -= count;
      await this.#created;
      throw this.#failure ?? error;
    }
  }

  /**
   * Row i becomes what row `rows[i]` was, after the calls made so far: as many rows as are given, each any number of times.
   * What was read of the source is shared and not copied.
   */
  async select(rows: readonly number[]): Promise<void> {
    const host = this.#alive();
    if (!Array.isArray(rows) || rows.length === 0)
      throw invalidValue('rows: an array of at least one row wanted');
    const selected = Int32Array.from(rows as number[], (row, i) =>
      readInteger(`rows[${i}]`, row, 0, this.#rows - 1),
    );
    const before = this.#rows;
    this.#rows = selected.length;
    try {
      await host.run({ op: 'selectDecoding', decoding: this.#owner.decoding, rows: selected });
    } catch (error) {
      this.#rows = before;
      await this.#created;
      throw this.#failure ?? error;
    }
  }

  /** Frees the memory once calls in progress are done; the object is of no use afterwards. May be called again. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    dropped.unregister(this);
    destroy(this.#host, this.#owner.decoding);
  }

  /** {@link TransformerDecoding.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }
}
