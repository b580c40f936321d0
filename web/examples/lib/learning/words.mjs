// Example logic: sentences to words and back, for models that learn. Lower case, punctuation apart, short forms written out;
// what `sentenceOf` puts together reads as a person would write it.

/** "don't" and its like, as the corpus writes them. Longer ones first. */
const LONG_FORMS = /** @type {const} */ ([
  [/\bcan't\b/g, 'cannot'],
  [/\bcan not\b/g, 'cannot'],
  [/\bwon't\b/g, 'will not'],
  [/n't\b/g, ' not'],
  [/\blet's\b/g, 'let us'],
  [/\b(it|he|she|that|what|where|who|how)'s\b/g, '$1 is'],
  [/'m\b/g, ' am'],
  [/'re\b/g, ' are'],
  [/'ve\b/g, ' have'],
  [/'ll\b/g, ' will'],
]);

// Spanish names that the sentences hold; everything else is written small.
const NAMES = new Map(
  ['Ana', 'Luis', 'España', 'México', 'Madrid', 'Navidad'].map((name) => [
    name.toLowerCase(),
    name,
  ]),
);

const OPENING = /^[¿¡]$/u;
const CLOSING = /^[?!.,;:]$/u;

/**
 * The words of a sentence, and its punctuation marks, each by itself. A full stop at the end says nothing and is left out.
 * @param {string} text
 * @returns {string[]}
 */
export function wordsOf(text) {
  let plain = text.normalize('NFC').replace(/[’‘`]/g, "'").toLowerCase();
  for (const [short, long] of LONG_FORMS) plain = plain.replace(short, long);
  const words = plain.match(/[\p{L}\p{M}\p{N}]+(?:['-][\p{L}\p{M}\p{N}]+)*|[¿¡?!.,;:]/gu) ?? [];
  return words.at(-1) === '.' ? words.slice(0, -1) : words;
}

/**
 * Words to a sentence: marks lean on the word that they belong to, the first letter and names are capital.
 * @param {readonly string[]} words
 * @returns {string}
 */
export function sentenceOf(words) {
  let text = '';
  let open = true;
  for (const word of words) {
    if (!open && !CLOSING.test(word)) text += ' ';
    text += NAMES.get(word) ?? word;
    open = OPENING.test(word);
  }
  return text.replace(/\p{L}/u, (letter) => letter.toUpperCase());
}
