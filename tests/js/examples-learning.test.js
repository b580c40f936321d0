// Tests: what the learning examples are built from: words, vocabularies, batches, the n-gram rival, the measures.

import { epochBatches, padded } from '../../web/examples/lib/learning/batches.mjs';
import { IntersectionOverUnion, exactMatches } from '../../web/examples/lib/learning/metrics.mjs';
import { NgramModel } from '../../web/examples/lib/learning/ngram.mjs';
import { END_ID, UNKNOWN_ID, Vocabulary } from '../../web/examples/lib/learning/vocabulary.mjs';
import { sentenceOf, wordsOf } from '../../web/examples/lib/learning/words.mjs';
import { shuffled } from '../../web/examples/lib/random.mjs';

describe('words', () => {
  test.each([
    ['You are welcome.', ['you', 'are', 'welcome']],
    ["I'm tired, can't you see?", ['i', 'am', 'tired', ',', 'cannot', 'you', 'see', '?']],
    ['He doesn’t know', ['he', 'does', 'not', 'know']],
    ['It is two o’clock', ['it', 'is', 'two', "o'clock"]],
    ['¿Dónde está?', ['¿', 'dónde', 'está', '?']],
    ['man\u0303ana', ['ma\u00f1ana']],
    ['   ', []],
  ])('%s', (text, words) => expect(wordsOf(text)).toEqual(words));

  test.each(['De nada', '¿Dónde está el banco?', '¡Feliz Navidad!', 'Estoy bien, gracias'])(
    '%s comes back as it was written',
    (text) => expect(sentenceOf(wordsOf(text))).toBe(text),
  );
});

describe('vocabulary', () => {
  const vocabulary = new Vocabulary(['a', 'b', 'a', 'c']);

  test('ids follow the first appearance, after the special tokens', () => {
    expect(vocabulary.size).toBe(7);
    expect(vocabulary.encode(['c', 'a', 'd'])).toEqual([6, 4, UNKNOWN_ID]);
    expect(vocabulary.missing(['d', 'a', 'd'])).toEqual(['d']);
  });

  test('decoding stops at the first end and leaves padding out', () => {
    expect(vocabulary.decode([1, 4, 0, 5, END_ID, 6])).toEqual(['a', 'b']);
  });
});

describe('batches', () => {
  test('sequences are filled up to the longest', () => {
    const { ids, shape, lengths } = padded([[7, 8], [9], []]);
    expect([...ids]).toEqual([7, 8, 9, 0, 0, 0]);
    expect(shape).toEqual([3, 2]);
    expect([...lengths]).toEqual([2, 1, 0]);
    expect(() => padded([[1, 2, 3]], 2)).toThrow(RangeError);
  });

  test('an epoch shows every item once, in another order each time', () => {
    const items = Array.from({ length: 103 }, (_, i) => i);
    const batches = epochBatches(items, 8, 1);
    expect(batches.map((batch) => batch.length)).toEqual([...new Array(12).fill(8), 7]);
    expect(batches.flat().sort((a, b) => a - b)).toEqual(items);
    expect(epochBatches(items, 8, 2).flat()).not.toEqual(epochBatches(items, 8, 1).flat());
    expect(epochBatches(items, 8, 1)).toEqual(epochBatches(items, 8, 1));
    expect(() => epochBatches(items, 0, 1)).toThrow(RangeError);
  });

  test('a shuffle keeps every item', () => {
    expect(shuffled([1, 2, 3, 4, 5], 3).sort()).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('n-gram model with back-off', () => {
  const letters = (text) => [...text].map((letter) => letter.charCodeAt(0) - 97);
  const model = new NgramModel([letters('abracadabra'), letters('alakazam')], {
    order: 3,
    vocabulary: 26,
  });

  test.each(['', 'a', 'br', 'zz', 'ka', 'abracadab'])(
    'the probabilities after "%s" are above 0 and add up to 1',
    (context) => {
      let sum = 0;
      for (let token = 0; token < 26; token++) {
        const probability = model.probability(letters(context), token);
        expect(probability).toBeGreaterThan(0);
        sum += probability;
      }
      expect(sum).toBeCloseTo(1, 12);
    },
  );

  test('by hand: order 2 on "aab aab"', () => {
    // Starts: a twice. After a: a twice, b twice. Nothing once, two n-grams twice: D = 0.5 where none occurs once. Without
    // context: a (2 starts, 1 predecessor a), b (1 predecessor a).
    const small = new NgramModel([letters('aab'), letters('aab')], { order: 2, vocabulary: 3 });
    expect(small.probability([0], 0)).toBeCloseTo((2 - 0.5) / 4, 12);
    // Given up after a: 0.5 · 2 / 4, and c alone is new there.
    expect(small.probability([0], 2)).toBeCloseTo(0.25, 12);
  });

  test('a text that repeats is foreseen, and more context foresees more', () => {
    const text = [letters('thefoxandthehareandthefox')];
    const perplexities = [1, 2, 3].map((order) =>
      new NgramModel(text, { order, vocabulary: 26 }).perplexity(text),
    );
    expect([...perplexities].sort((a, b) => b - a)).toEqual(perplexities);
    expect(perplexities.at(-1)).toBeLessThan(2);
  });

  test('an order that is none is an error', () => {
    expect(() => new NgramModel([], { order: 0, vocabulary: 3 })).toThrow(RangeError);
  });
});

describe('measures', () => {
  test('exact match wants every token that counts', () => {
    // Three sequences of two: right, wrong in its second place, right where it counts.
    expect(exactMatches([4, 2, 5, 6, 7, 9], [4, 2, 5, 2, 7, -1], 2)).toBe(2);
    expect(() => exactMatches([1], [1, 2], 1)).toThrow(RangeError);
  });

  test('mean intersection over union', () => {
    const measure = new IntersectionOverUnion(4);
    measure.add([0, 0, 1, 1], [0, 1, 1, 1]);
    measure.add([2], [0]);
    // Class 0: 1 of 3; class 1: 2 of 3; class 2: 0 of 1; class 3 does not occur.
    expect(measure.perClass()).toEqual([1 / 3, 2 / 3, 0, NaN]);
    expect(measure.mean()).toBeCloseTo(1 / 3, 12);
    expect(() => measure.add([0], [0, 1])).toThrow(RangeError);
  });
});
