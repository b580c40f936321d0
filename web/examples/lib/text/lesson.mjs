// Example logic: learning to write. A decoder on single characters: from all that stands before, the next one.
import { padded } from '../learning/batches.mjs';
import { cosineRate } from '../learning/lesson.mjs';
import { NgramModel } from '../learning/ngram.mjs';
import { BEGIN_ID, END_ID, PAD_ID, SPECIAL, Vocabulary } from '../learning/vocabulary.mjs';
import { shuffled, uniformGenerator } from '../random.mjs';
import { textCorpus } from './corpus.mjs';

/** @typedef {import('headwise').Transformer} Transformer */
/** @typedef {{ perplexity: number, rival: number }} Measures of a character of the paragraphs kept back */

/** Characters that the model sees at once. */
export const CONTEXT = 96;
const BATCH = 16;
const EPOCHS = 20;
const SEED = 1;
const IGNORED = -1;

/** @param {string} paragraph */
const letters = (paragraph) => [...paragraph];

/**
 * Windows of a text: what is read and, one further, what is to be said.
 * @param {readonly (readonly number[])[]} windows of at most CONTEXT + 1
 * @returns {import('headwise').TrainingBatch}
 */
function batchOf(windows) {
  const target = padded(windows.map((window) => window.slice(0, -1)));
  const labels = padded(windows.map((window) => window.slice(1)));
  return {
    target: { data: target.ids, shape: target.shape },
    labels: { data: labels.ids.map((id) => (id === PAD_ID ? IGNORED : id)), shape: labels.shape },
  };
}

export function textLesson() {
  const corpus = textCorpus();
  const vocabulary = new Vocabulary(corpus.training.flatMap(letters));
  const encode = (/** @type {string} */ paragraph) => [
    ...vocabulary.encode(letters(paragraph)),
    END_ID,
  ];
  const training = corpus.training.map(encode);
  const heldOut = corpus.heldOut.map(encode);
  const rivalModel = new NgramModel(training, { order: 5, vocabulary: vocabulary.size });
  const rival = rivalModel.perplexity(heldOut);

  /**
   * An epoch's windows: every character is to be said once. Each paragraph is cut at another place each time.
   * @param {number} epoch
   */
  function windowsOf(epoch) {
    const uniform = uniformGenerator(epoch + 1);
    /** @type {number[][]} */
    const windows = [];
    for (const paragraph of training) {
      const whole = [BEGIN_ID, ...paragraph];
      let end = 1 + Math.ceil(uniform() * CONTEXT);
      for (let start = 0; start < whole.length - 1; start = end - 1, end += CONTEXT)
        windows.push(whole.slice(start, end));
    }
    return shuffled(windows, epoch);
  }
  const stepsPerEpoch = Math.ceil(
    training.reduce((sum, p) => sum + Math.ceil(p.length / CONTEXT), 0) / BATCH,
  );

  /**
   * exp of the mean loss over all characters kept back. Each is said with at least half a context before it, or with all that
   * there is.
   * @param {Transformer} model
   * @param {AbortSignal} [signal]
   */
  async function perplexity(model, signal) {
    /** @type {{ window: number[], from: number }[]} */
    const windows = [];
    for (const paragraph of heldOut) {
      const whole = [BEGIN_ID, ...paragraph];
      let said = 0;
      for (let start = 0; said < paragraph.length; start += CONTEXT / 2) {
        const window = whole.slice(start, start + CONTEXT + 1);
        windows.push({ window, from: said - start });
        said = start + window.length - 1;
      }
    }
    let sum = 0;
    let count = 0;
    for (let at = 0; at < windows.length; at += 32) {
      const some = windows.slice(at, at + 32);
      const { target } = batchOf(some.map(({ window }) => window));
      const logits = await model.forward({ target }, { signal });
      const [, length, classes] = logits.shape;
      some.forEach(({ window, from }, row) => {
        for (let i = from; i < window.length - 1; i++) {
          const start = (row * length + i) * classes;
          sum += lossOf(logits.data.subarray(start, start + classes), window[i + 1]);
          count++;
        }
      });
    }
    return Math.exp(sum / count);
  }

  /**
   * Writes on, character by character; the context slides along.
   * @param {Transformer} model
   * @param {string} prompt
   * @param {{ length: number, temperature: number, seed: number, signal?: AbortSignal }} options
   * @returns {AsyncGenerator<string, void, undefined>} ends with the paragraph, or after `length` characters
   */
  async function* write(model, prompt, { length, temperature, seed, signal }) {
    const tokens = [BEGIN_ID, ...vocabulary.encode(letters(prompt))];
    for (let made = 0; made < length;) {
      // A quarter of the context is left free; then it moves on by that.
      const seen = tokens.slice(-CONTEXT * 0.75);
      const room = Math.min(length - made, CONTEXT - seen.length);
      let ended = 0;
      const stream = model.generateStream(
        {},
        { prompt: seen, endToken: END_ID, maxTokens: room, temperature, seed: seed + made, signal },
      );
      for await (const token of stream) {
        tokens.push(token);
        ended++;
        // A hot draw may hit a token that is no character.
        if (!SPECIAL.includes(/** @type {any} */ (vocabulary.tokens[token])))
          yield vocabulary.tokens[token];
      }
      made += ended;
      if (ended < room) return;
    }
  }

  return {
    vocabulary,
    rival,
    perplexity,
    write,
    /**
     * What a text's attention is asked with, and its characters: the last CONTEXT of them.
     * @param {string} text
     */
    inputOf(text) {
      const tokens = [BEGIN_ID, ...vocabulary.encode(letters(text))].slice(-CONTEXT);
      return { input: { target: [tokens] }, labels: tokens.map((id) => vocabulary.tokens[id]) };
    },
    /** @type {import('../learning/lesson.mjs').Lesson<Measures>} */
    lesson: {
      config: {
        kind: 'decoder',
        embedDim: 64,
        numHeads: 4,
        feedForwardDim: 128,
        decoderLayers: 2,
        targetVocabulary: vocabulary.size,
        maxLength: CONTEXT,
        normFirst: true,
        activation: 'gelu',
        positions: 'learned',
        seed: SEED,
      },
      epochs: EPOCHS,
      stepsPerEpoch,
      options: {
        optimizer: 'adamw',
        learningRate: cosineRate(5e-3, 40, EPOCHS * stepsPerEpoch),
        betas: [0.9, 0.98],
        weightDecay: 0.05,
        maxGradientNorm: 1,
      },
      *batches(epoch) {
        const windows = windowsOf(epoch);
        // As many steps in every epoch, whatever the cuts.
        const size = Math.ceil(windows.length / stepsPerEpoch);
        for (let at = 0; at < windows.length; at += size)
          yield batchOf(windows.slice(at, at + size));
      },
      async measure(model, signal) {
        return { perplexity: await perplexity(model, signal), rival };
      },
    },
  };
}

/** −ln of a class's share in a softmax. @param {Float32Array} logits @param {number} wanted */
function lossOf(logits, wanted) {
  const top = Math.max(...logits);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - top);
  return Math.log(sum) + top - logits[wanted];
}
