// Example data: the text that the generator learns: rhymes and tales, one a paragraph; every tenth paragraph is kept back.
import { shuffled } from '../random.mjs';
import { RHYMES } from './rhymes.mjs';
import { tales } from './tales.mjs';

const SEED = 11;
const TALES = 170;

/**
 * @returns {{ training: string[], heldOut: string[] }} paragraphs, about 45,000 characters in all, nine to one
 */
export function textCorpus() {
  const paragraphs = shuffled([...RHYMES, ...new Set(tales(TALES, SEED))], SEED);
  return {
    training: paragraphs.filter((_, index) => index % 10 !== 9),
    heldOut: paragraphs.filter((_, index) => index % 10 === 9),
  };
}
