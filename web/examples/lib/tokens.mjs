// Example logic: a sentence into tokens, and tokens into ids with a table of vectors. Words, not sub-words: the articles do the same.
import { hashString, normalNumbers } from './random.mjs';

/** The token that fills a sequence up to its length. Its id is always 0. */
export const PAD = '<pad>';

/** So many tokens are kept when nothing else is said: a map of 64 × 64 can still be read. */
export const TOKEN_LIMIT = 64;

// Scripts written without spaces between words. Everything else is cut at white space only, which keeps "[SEP]", emoji
// with joiners and combining letters in one piece.
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

// Intl.Segmenter grows slower than linearly on one long run (measured: 200 s for 225,000 characters in one piece, 0.3 s in
// pieces of 256), so long runs are fed to it in pieces.
const PIECE = 256;

/** @type {Intl.Segmenter | null | undefined} */
let wordSegmenter;

function segmenter() {
  if (wordSegmenter === undefined) {
    wordSegmenter =
      typeof Intl !== 'undefined' && 'Segmenter' in Intl
        ? new Intl.Segmenter(undefined, { granularity: 'word' })
        : null;
  }
  return wordSegmenter;
}

/**
 * Words of one run without white space.
 * @param {string} run
 * @returns {Iterable<string>}
 */
function* wordsOf(run) {
  const words = UNSPACED.test(run) ? segmenter() : null;
  if (!words) {
    yield run;
    return;
  }
  for (let start = 0; start < run.length;) {
    let end = Math.min(start + PIECE, run.length);
    // Not between the halves of a surrogate pair.
    if (end < run.length && (run.charCodeAt(end) & 0xfc00) === 0xdc00) end++;
    for (const { segment } of words.segment(run.slice(start, end))) yield segment;
    start = end;
  }
}

/**
 * Cuts a text into tokens: at white space, and between words where a script writes none (Chinese, Japanese, Thai …).
 * @param {string} text
 * @param {number} [limit] how many tokens are kept
 * @returns {{ tokens: string[], total: number }} the first `limit` tokens, and how many there were
 */
export function tokenize(text, limit = TOKEN_LIMIT) {
  /** @type {string[]} */
  const tokens = [];
  let total = 0;
  for (const run of text.normalize('NFC').split(/\s+/u)) {
    if (run === '') continue;
    for (const word of wordsOf(run)) {
      total++;
      if (tokens.length < limit) tokens.push(word);
    }
  }
  return { tokens, total };
}

/**
 * Fills a sequence up to a length with {@link PAD}.
 * @param {string[]} tokens
 * @param {number} length at least the number of tokens
 * @returns {{ tokens: string[], valid: number, keep: Uint8Array }} `keep[i]` is 1 where token i is a real one
 */
export function padTokens(tokens, length) {
  const keep = new Uint8Array(length);
  keep.fill(1, 0, tokens.length);
  return {
    tokens: [...tokens, ...new Array(length - tokens.length).fill(PAD)],
    valid: tokens.length,
    keep,
  };
}

/**
 * A vocabulary of the distinct tokens (upper and lower case are one word) with a vector for each. A word's vector depends on
 * the word and the seed alone, so it is the same in every sentence; it is drawn, not learned.
 * @param {string[][]} sequences
 * @param {number} size entries of a vector, E
 * @param {number} [seed]
 * @returns {{ words: string[], table: { data: Float32Array, shape: number[] }, ids: Int32Array[] }} the table is [V,E]
 */
export function buildVocabulary(sequences, size, seed = 0) {
  const words = [PAD];
  const idOf = new Map([[PAD, 0]]);
  const ids = sequences.map((tokens) =>
    Int32Array.from(tokens, (token) => {
      const word = token === PAD ? PAD : token.toLowerCase();
      let id = idOf.get(word);
      if (id === undefined) {
        id = words.length;
        idOf.set(word, id);
        words.push(word);
      }
      return id;
    }),
  );
  const data = new Float32Array(words.length * size);
  words.forEach((word, id) => {
    // Padding carries nothing: its vector is zero.
    if (id > 0) data.set(normalNumbers(size, hashString(word, seed)), id * size);
  });
  return { words, table: { data, shape: [words.length, size] }, ids };
}
