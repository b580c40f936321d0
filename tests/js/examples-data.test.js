// Tests: the data that the learning examples learn from: sizes, consistency, splits, the same everywhere.

import {
  CLASSES,
  GRID,
  PATCHES,
  PATCH_SIZE,
  SIDE,
  makeScene,
  patchesOf,
} from '../../web/examples/lib/segmentation/scenes.mjs';
import { textCorpus } from '../../web/examples/lib/text/corpus.mjs';
import {
  SHOWN,
  sourceWordsOf,
  translationCorpus,
} from '../../web/examples/lib/translation/corpus.mjs';
import { FRAMES } from '../../web/examples/lib/translation/sentences.mjs';
import { sentenceOf, wordsOf } from '../../web/examples/lib/learning/words.mjs';

describe('translation corpus', () => {
  const { training, heldOut } = translationCorpus();
  const all = [...training, ...heldOut];

  test('at least 400 pairs, and enough kept back', () => {
    expect(training.length).toBeGreaterThanOrEqual(400);
    expect(heldOut.length).toBeGreaterThanOrEqual(150);
    expect(training).toContainEqual({ source: 'You are welcome', target: 'De nada' });
  });

  test('no sentence has two translations, and none is in both parts', () => {
    expect(new Set(all.map(({ source }) => sourceWordsOf(source).join(' '))).size).toBe(all.length);
  });

  test('what is kept back is made of words that are learned', () => {
    for (const side of ['source', 'target']) {
      const known = new Set(training.flatMap((pair) => wordsOf(pair[side])));
      const unknown = heldOut
        .flatMap((pair) => wordsOf(pair[side]))
        .filter((word) => !known.has(word));
      expect(unknown).toEqual([]);
    }
  });

  test('every Spanish sentence survives being cut into words', () => {
    expect(all.map(({ target }) => sentenceOf(wordsOf(target)))).toEqual(
      all.map(({ target }) => target),
    );
  });

  test('questions and exclamations open as they close', () => {
    for (const { source, target } of all) {
      expect(target.startsWith('¿')).toBe(target.endsWith('?'));
      expect(target.startsWith('¡')).toBe(target.endsWith('!'));
      if (source.endsWith('?')) expect(target).toMatch(/[¿]/);
    }
  });

  test.each([
    ['I am not thirsty', 'No tengo sed'],
    ['She wants a red lamp', 'Ella quiere una lámpara roja'],
    ['The houses are white', 'Las casas son blancas'],
    ['They are going to the market tomorrow', 'Ellos van al mercado mañana'],
    ['He does not like dogs', 'A él no le gustan los perros'],
    ['Our aunt is busy', 'Nuestra tía está ocupada'],
    ['Two beers, please', 'Dos cervezas, por favor'],
    ['We cannot swim tonight', 'No podemos nadar esta noche'],
  ])('%s', (source, target) => {
    expect(FRAMES.flatMap(({ pairs }) => pairs)).toContainEqual({ source, target });
  });

  test('the list that is shown is in English that the corpus knows', () => {
    const known = new Set(training.flatMap(({ source }) => wordsOf(source)));
    expect(SHOWN.flatMap(wordsOf).filter((word) => !known.has(word))).toEqual([]);
  });
});

describe('text corpus', () => {
  const { training, heldOut } = textCorpus();

  test('30 to 60 kB, one tenth kept back, no paragraph in both', () => {
    const size = [...training, ...heldOut].join('\n').length;
    expect(size).toBeGreaterThan(30_000);
    expect(size).toBeLessThan(60_000);
    expect(heldOut.length / (training.length + heldOut.length)).toBeCloseTo(0.1, 1);
    expect(training.filter((paragraph) => heldOut.includes(paragraph))).toEqual([]);
  });

  test('its letters are plain, and those kept back are known', () => {
    const letters = new Set(training.join(''));
    expect([...new Set(heldOut.join(''))].filter((letter) => !letters.has(letter))).toEqual([]);
    expect([...letters].filter((letter) => !/[A-Za-z ,.?"-]/.test(letter))).toEqual([]);
  });

  test('articles fit their nouns', () => {
    const text = [...training, ...heldOut].join('\n');
    expect(text.match(/\ba [aeio]\w+/gi)).toBeNull();
    expect(text.match(/\ban [^aeio]\w+/gi)).toBeNull();
  });
});

describe('scenes', () => {
  test('the same seed makes the same scene, another another', () => {
    expect(makeScene(3)).toEqual(makeScene(3));
    expect(makeScene(3).pixels).not.toEqual(makeScene(4).pixels);
  });

  test('sizes and ranges', () => {
    const scenes = [makeScene(0), makeScene(1)];
    const { data, shape } = patchesOf(scenes);
    expect(shape).toEqual([2, PATCHES, PATCH_SIZE]);
    expect(data.every((value) => value >= -1 && value <= 1)).toBe(true);
    expect(scenes[0].pixels.length).toBe(SIDE * SIDE * 3);
    expect(scenes[0].truth.length).toBe(GRID * GRID);
  });

  test('patches hold the pixels that they cover', () => {
    const scene = makeScene(5);
    const { data } = patchesOf([scene]);
    // Patch (2, 3), its pixel (1, 2), green.
    const pixel = scene.pixels[((2 * 4 + 1) * SIDE + 3 * 4 + 2) * 3 + 1];
    expect(data[(2 * GRID + 3) * PATCH_SIZE + (1 * 4 + 2) * 3 + 1]).toBeCloseTo(2 * pixel - 1, 6);
  });

  test('every class occurs, the ground most', () => {
    const counts = new Array(CLASSES.length).fill(0);
    for (let seed = 0; seed < 60; seed++) for (const kind of makeScene(seed).truth) counts[kind]++;
    expect(Math.min(...counts)).toBeGreaterThan(0.03 * 60 * PATCHES);
    expect(counts.indexOf(Math.max(...counts))).toBe(0);
  });
});
