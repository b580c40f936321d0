// Example logic: learning to translate. An encoder-decoder on words, as in document 001, small enough for two minutes.
import { epochBatches, padded } from '../learning/batches.mjs';
import { cosineRate, likeliest } from '../learning/lesson.mjs';
import { exactMatches } from '../learning/metrics.mjs';
import { BEGIN_ID, END_ID, PAD_ID, Vocabulary } from '../learning/vocabulary.mjs';
import { sentenceOf, wordsOf } from '../learning/words.mjs';
import { shuffled } from '../random.mjs';
import { SHOWN, sourceWordsOf, translationCorpus } from './corpus.mjs';

/** @typedef {import('headwise').Transformer} Transformer */
/** @typedef {{ source: number[], target: number[] }} Encoded with the end token, without the begin token */
/** @typedef {{ training: number, heldOut: number, shown: { source: string, target: string }[] }} Measures exact match, 0 to 1 */

const BATCH = 32;
const EPOCHS = 11;
const SEED = 1;
/** Labels that do not count. */
const IGNORED = -1;
/** Longest sentence, its marks included. */
export const LONGEST = 20;
/** So many training pairs are looked at after an epoch; all of them at the end. */
const LOOKED_AT = 256;

/** @param {readonly Encoded[]} pairs @returns {import('headwise').TrainingBatch} */
function batchOf(pairs) {
  const source = padded(pairs.map((pair) => pair.source));
  const target = padded(pairs.map((pair) => [BEGIN_ID, ...pair.target.slice(0, -1)]));
  const labels = padded(pairs.map((pair) => pair.target));
  return {
    source: { data: source.ids, shape: source.shape },
    sourceMask: {
      data: Uint8Array.from(source.ids, (id) => Number(id !== PAD_ID)),
      shape: source.shape,
    },
    target: { data: target.ids, shape: target.shape },
    labels: { data: labels.ids.map((id) => (id === PAD_ID ? IGNORED : id)), shape: labels.shape },
  };
}

/** The corpus as ids, the lesson, and what a trained model is asked. */
export function translationLesson() {
  const corpus = translationCorpus();
  const english = new Vocabulary(corpus.training.flatMap(({ source }) => sourceWordsOf(source)));
  const spanish = new Vocabulary(corpus.training.flatMap(({ target }) => wordsOf(target)));
  /** @param {import('./phrases.mjs').Pair} pair @returns {Encoded} */
  const encode = ({ source, target }) => ({
    source: [...english.encode(sourceWordsOf(source)), END_ID],
    target: [...spanish.encode(wordsOf(target)), END_ID],
  });
  const training = corpus.training.map(encode);
  const heldOut = corpus.heldOut.map(encode);
  const lookedAt = shuffled(training, SEED).slice(0, LOOKED_AT);
  const stepsPerEpoch = Math.ceil(training.length / BATCH);

  /**
   * The share of pairs that greedy translation gets right word for word. One pass over the wanted words tells: greedy decoding
   * says just these if and only if each of them is the likeliest behind those before it.
   * @param {Transformer} model
   * @param {readonly Encoded[]} pairs
   * @param {AbortSignal} [signal]
   */
  async function exactMatch(model, pairs, signal) {
    let right = 0;
    for (const items of epochBatches(pairs, 128, 0)) {
      const { labels, ...input } = batchOf(items);
      const logits = await model.forward(input, { signal });
      const { data, shape } = /** @type {{ data: Int32Array, shape: number[] }} */ (labels);
      right += exactMatches(likeliest(logits.data, spanish.size), data, shape[1]);
    }
    return right / pairs.length;
  }

  /**
   * Translates a sentence.
   * @param {Transformer} model
   * @param {string} text
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ text: string, sourceWords: string[], targetWords: string[], unknown: string[] }>} the words are those
   *   that the maps are labelled with; unknown ones are in no sentence that was learned
   */
  async function translate(model, text, signal) {
    const words = sourceWordsOf(text).slice(0, LONGEST - 1);
    const made = await model.generate(
      { source: [[...english.encode(words), END_ID]] },
      { startToken: BEGIN_ID, endToken: END_ID, maxTokens: LONGEST - 1, signal },
    );
    const targetWords = spanish.decode(made);
    return {
      text: sentenceOf(targetWords),
      sourceWords: words,
      targetWords,
      unknown: english.missing(words),
    };
  }

  return {
    english,
    spanish,
    training,
    heldOut,
    translate,
    exactMatch,
    sentenceOf,
    /**
     * What a pair's attention is asked with: the source with its end, the target behind its begin.
     * @param {readonly string[]} sourceWords
     * @param {readonly string[]} targetWords
     */
    inputOf: (sourceWords, targetWords) => ({
      source: [[...english.encode(sourceWords), END_ID]],
      target: [[BEGIN_ID, ...spanish.encode(targetWords)]],
    }),
    /** @type {import('../learning/lesson.mjs').Lesson<Measures>} */
    lesson: {
      config: {
        kind: 'encoder-decoder',
        embedDim: 64,
        numHeads: 4,
        feedForwardDim: 128,
        encoderLayers: 2,
        decoderLayers: 2,
        sourceVocabulary: english.size,
        targetVocabulary: spanish.size,
        maxLength: LONGEST,
        seed: SEED,
      },
      epochs: EPOCHS,
      stepsPerEpoch,
      options: {
        optimizer: 'adamw',
        learningRate: cosineRate(3e-3, 60, EPOCHS * stepsPerEpoch),
        betas: [0.9, 0.98],
        weightDecay: 0.01,
        labelSmoothing: 0.05,
        maxGradientNorm: 1,
      },
      *batches(epoch) {
        for (const items of epochBatches(training, BATCH, epoch)) yield batchOf(items);
      },
      async measure(model, signal) {
        const shown = [];
        for (const source of SHOWN)
          shown.push({ source, target: (await translate(model, source, signal)).text });
        return {
          training: await exactMatch(model, lookedAt, signal),
          heldOut: await exactMatch(model, heldOut, signal),
          shown,
        };
      },
    },
  };
}
