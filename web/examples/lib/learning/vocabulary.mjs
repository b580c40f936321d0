// Example logic: tokens to ids and back. The first four ids are the same in every vocabulary.

/** Fills a sequence up, begins one, ends one, stands for a token that nobody has seen. Their ids are 0 to 3. */
export const PAD = '<pad>';
export const BEGIN = '<s>';
export const END = '</s>';
export const UNKNOWN = '<?>';
export const SPECIAL = /** @type {const} */ ([PAD, BEGIN, END, UNKNOWN]);
export const PAD_ID = 0;
export const BEGIN_ID = 1;
export const END_ID = 2;
export const UNKNOWN_ID = 3;

export class Vocabulary {
  /** @type {readonly string[]} */
  tokens;
  /** @type {Map<string, number>} */
  #ids;

  /** @param {Iterable<string>} tokens in any order, repetitions welcome; ids follow the order of first appearance */
  constructor(tokens) {
    const distinct = new Set([...SPECIAL, ...tokens]);
    this.tokens = [...distinct];
    this.#ids = new Map(this.tokens.map((token, id) => [token, id]));
  }

  /** How many there are, V. */
  get size() {
    return this.tokens.length;
  }

  /** @param {readonly string[]} tokens @returns {number[]} UNKNOWN_ID where a token is not in the vocabulary */
  encode(tokens) {
    return tokens.map((token) => this.#ids.get(token) ?? UNKNOWN_ID);
  }

  /** @param {Iterable<number>} ids @returns {string[]} up to the first end, beginnings and padding left out */
  decode(ids) {
    const tokens = [];
    for (const id of ids) {
      if (id === END_ID) break;
      if (id !== PAD_ID && id !== BEGIN_ID) tokens.push(this.tokens[id] ?? UNKNOWN);
    }
    return tokens;
  }

  /** @param {readonly string[]} tokens @returns {string[]} those that the vocabulary lacks, each once */
  missing(tokens) {
    return [...new Set(tokens.filter((token) => !this.#ids.has(token)))];
  }
}
