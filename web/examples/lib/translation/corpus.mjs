// Example data: the translation corpus: pairs to learn from, and pairs kept back, recombinations of known words that training
// never shows. Deterministic: the same split everywhere.
import { PHRASES } from './phrases.mjs';
import { FRAMES } from './sentences.mjs';
import { shuffled } from '../random.mjs';
import { wordsOf } from '../learning/words.mjs';

/** @typedef {import('./phrases.mjs').Pair} Pair */

const SEED = 6;
/** So many are kept back for each that is learned, where a frame has more to say. */
const KEPT_BACK = 0.2;

/** The fixed list that is translated after each epoch. */
export const SHOWN = /** @type {const} */ ([
  'You are welcome',
  'Thank you very much',
  'Where is the station?',
  'She wants a red hat',
  'We are going to the beach tomorrow',
  'I do not like fish',
]);

/**
 * The words of an English sentence. An exclamation mark there is a matter of mood, and nobody types it reliably.
 * @param {string} text
 */
export const sourceWordsOf = (text) => wordsOf(text).filter((word) => word !== '!');

/**
 * @returns {{ training: Pair[], heldOut: Pair[] }} about 1400 pairs and about 240; every word of the second occurs in the first
 */
export function translationCorpus() {
  /** @type {Pair[]} */
  const training = [...PHRASES];
  /** @type {Pair[]} */
  const heldOut = [];
  FRAMES.forEach(({ pairs, take, keepBack }, frame) => {
    const mixed = shuffled(pairs, SEED + frame);
    training.push(...mixed.slice(0, take));
    heldOut.push(...mixed.slice(take, take + (keepBack ?? Math.round(take * KEPT_BACK))));
  });
  const known = new Set(
    training.flatMap(({ source, target }) => [...wordsOf(source), ...wordsOf(target)]),
  );
  return {
    training,
    heldOut: heldOut.filter(({ source, target }) =>
      [...wordsOf(source), ...wordsOf(target)].every((word) => known.has(word)),
    ),
  };
}
