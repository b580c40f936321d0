// Example logic: an n-gram model with back-off, what a small text can be predicted with by counting alone: the rival of the
// trained model. Kneser and Ney, 1995, in the back-off form: a context that has been seen gives up a fixed share D of each count;
// what it gives up is spread over the tokens it has not been followed by, as the context shorter by one would. Below the top
// order, counts are of the different tokens that stand before, not of occurrences.
//
//   P(w | h) = (c(h w) − D) / c(h)                    where c(h w) > 0
//            = α(h) · P(w | h′)                       otherwise, h′ = h without its first token
//   α(h)     = (D · n(h) / c(h)) / (1 − Σ P(w | h′) over the w seen after h)
//   D        = n₁ / (n₁ + 2 n₂), n₁ and n₂ the n-grams of that order with count 1 and 2
// The shortest context is none: there the shares given up are spread evenly over the vocabulary.

/**
 * @typedef {object} Context
 * @property {number} total c(h)
 * @property {Map<number, number>} counts c(h w)
 * @property {number} [alpha] found when first wanted
 */

export class NgramModel {
  #order;
  #size;
  /** Contexts by their length; a context's key is its tokens. @type {Map<string, Context>[]} */
  #contexts;
  /** @type {number[]} */
  #discounts;

  /**
   * @param {readonly (readonly number[])[]} sequences ids; counts do not run from one into the next
   * @param {{ order?: number, vocabulary: number }} options order 5: four tokens of context; vocabulary V: ids are below it
   */
  constructor(sequences, { order = 5, vocabulary }) {
    if (!Number.isInteger(order) || order < 1)
      throw new RangeError(`order: wanted 1 or more, got ${order}`);
    this.#order = order;
    this.#size = vocabulary;
    this.#contexts = Array.from({ length: order }, () => new Map());
    for (const sequence of sequences) {
      for (let at = 0; at < sequence.length; at++) {
        this.#count(sequence, at, Math.min(order - 1, at));
      }
    }
    this.#discounts = this.#contexts.map((contexts) => discountOf(contexts.values()));
  }

  get order() {
    return this.#order;
  }

  /**
   * Counts the token at a place after its `length` predecessors. When the n-gram is new, it also counts for the context shorter
   * by one: that is the count of different predecessors.
   * @param {readonly number[]} sequence
   * @param {number} at
   * @param {number} length
   */
  #count(sequence, at, length) {
    for (let n = length; n >= 0; n--) {
      const key = keyOf(sequence, at - n, at);
      let context = this.#contexts[n].get(key);
      if (!context) this.#contexts[n].set(key, (context = { total: 0, counts: new Map() }));
      const before = context.counts.get(sequence[at]) ?? 0;
      context.counts.set(sequence[at], before + 1);
      context.total++;
      if (before > 0) return;
    }
  }

  /**
   * The probability of a token after a context of any length; only its last tokens count.
   * @param {readonly number[]} context
   * @param {number} token
   * @returns {number} above 0, and over all tokens 1
   */
  probability(context, token) {
    const length = Math.min(this.#order - 1, context.length);
    return this.#probability(context.slice(context.length - length), token);
  }

  /** @param {readonly number[]} context @param {number} token @returns {number} */
  #probability(context, token) {
    const n = context.length;
    const seen = this.#contexts[n].get(keyOf(context, 0, n));
    if (!seen) return n === 0 ? 1 / this.#size : this.#probability(context.slice(1), token);
    const discount = this.#discounts[n];
    const given = (discount * seen.counts.size) / seen.total;
    if (n === 0)
      return (
        ((seen.counts.get(token) ?? 0) - (seen.counts.has(token) ? discount : 0)) / seen.total +
        given / this.#size
      );
    const count = seen.counts.get(token);
    if (count !== undefined) return (count - discount) / seen.total;
    const shorter = context.slice(1);
    if (seen.alpha === undefined) {
      let rest = 1;
      for (const known of seen.counts.keys()) rest -= this.#probability(shorter, known);
      seen.alpha = given / rest;
    }
    return seen.alpha * this.#probability(shorter, token);
  }

  /**
   * exp of the mean of −ln P over all tokens of the sequences; what stands before a sequence is nothing.
   * @param {readonly (readonly number[])[]} sequences
   */
  perplexity(sequences) {
    let sum = 0;
    let tokens = 0;
    for (const sequence of sequences) {
      sequence.forEach((token, at) => {
        sum -= Math.log(
          this.probability(sequence.slice(Math.max(0, at - this.#order + 1), at), token),
        );
      });
      tokens += sequence.length;
    }
    return Math.exp(sum / tokens);
  }
}

/** @param {readonly number[]} sequence @param {number} from @param {number} to */
const keyOf = (sequence, from, to) => sequence.slice(from, to).join(',');

/** @param {Iterable<Context>} contexts @returns {number} D, from 0 to below 1; 0.5 where nothing occurs once or twice */
function discountOf(contexts) {
  let once = 0;
  let twice = 0;
  for (const { counts } of contexts) {
    for (const count of counts.values()) {
      if (count === 1) once++;
      else if (count === 2) twice++;
    }
  }
  return once === 0 ? 0.5 : once / (once + 2 * Math.max(1, twice));
}
