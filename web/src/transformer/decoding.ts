/// <reference lib="esnext.disposable" preserve="true" />
// Public: a target that a Transformer reads a few tokens at a time. What has been read lives in the core; this object knows a
// number, and how long the target will be once all calls made so far are done.
import type { IntegersLike } from '../tensor-types.js';
import { invalidShape, invalidValue } from '../errors.js';
import { Handle, type HandleOwner } from '../handle.js';
import type { TransformerBatch, TransformerDecodeRequest } from '../request.js';
import { snapshot } from '../snapshot.js';
import { Tensor } from '../tensor.js';
import { readInteger, readOptions, readSignal } from '../validation/options.js';
import { readTokens } from './batch.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/** The model that a decoding is of. */
export interface DecodedModel {
  /** Its number in the core. */
  model: number;
  vocabulary: number;
}

/**
 * Targets that are read a few tokens at a time: keys and values of what has been read are kept, so that a token costs what it
 * costs itself, however long the target is. Made by `Transformer.decoding`; for text from a model, `generate` is shorter.
 */
export class TransformerDecoding {
  /** Tokens that a target may have. */
  readonly capacity: number;
  readonly #handle: Handle;
  readonly #of: DecodedModel;
  // Sent with the first tokens.
  readonly #source: Omit<TransformerBatch, 'batch' | 'targetLength'>;
  #rows: number;
  #length = 0;

  /** Use `Transformer.decoding`. @internal */
  constructor(
    owner: HandleOwner,
    of: DecodedModel,
    source: Omit<TransformerBatch, 'batch' | 'targetLength'>,
    rows: number,
    capacity: number,
  ) {
    this.#of = of;
    this.#source = snapshot(source);
    this.#rows = rows;
    this.capacity = capacity;
    const { model } = of;
    this.#handle = new Handle(
      owner,
      'decoding',
      (decoding) => ({ op: 'createDecoding', decoding, model, rows, capacity }),
      true, // after the weights that are being set
    );
  }

  /** How many targets there are. */
  get rows(): number {
    return this.#rows;
  }

  /** Tokens read of each target: what all calls made so far lead to. */
  get length(): number {
    return this.#length;
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
    this.#handle.check();
    const { vocabulary, model } = this.#of;
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
      decoding: this.#handle.number,
      start: this.#length,
      batch: rows,
      targetLength: count,
      target: data,
      logits: rows * vocabulary,
    };
    const running = this.#handle.run(request, signal);
    this.#length += count;
    try {
      return new Tensor((await running).output as Float32Array, [rows, vocabulary]);
    } catch (error) {
      this.#length -= count;
      throw error;
    }
  }

  /**
   * Row i becomes what row `rows[i]` was, after the calls made so far: as many rows as are given, each any number of times.
   * What was read of the source is shared and not copied.
   */
  async select(rows: readonly number[]): Promise<void> {
    this.#handle.check();
    if (!Array.isArray(rows) || rows.length === 0)
      throw invalidValue('rows: an array of at least one row wanted');
    const selected = Int32Array.from(rows as number[], (row, i) =>
      readInteger(`rows[${i}]`, row, 0, this.#rows - 1),
    );
    const before = this.#rows;
    this.#rows = selected.length;
    try {
      const decoding = this.#handle.number;
      await this.#handle.run({ op: 'selectDecoding', decoding, rows: selected });
    } catch (error) {
      this.#rows = before;
      throw error;
    }
  }

  /** Frees the memory once calls in progress are done; the object is of no use afterwards. May be called again. */
  dispose(): void {
    this.#handle.dispose();
  }

  /** {@link TransformerDecoding.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }
}
