// Example logic: document 001's steps with the numbers of a trained model. The three attentions are those of the first encoder
// layer and the first decoder layer; what stands between them in a real model (residuals, layer normalisation, feed-forward) is
// gone through here too, so that every attention gets what it gets when the model translates.
import { Clock } from '../clock.mjs';
import { add, reshape } from '../matrix.mjs';
import { padTokens } from '../tokens.mjs';
import { takeApart } from '../transformer.mjs';
import { BEGIN, END, PAD } from '../learning/vocabulary.mjs';
import { sourceWordsOf } from './corpus.mjs';

/** @typedef {import('headwise').Engine} Engine */
/** @typedef {import('../matrix.mjs').Numbers} Numbers */
/** @typedef {Record<string, Numbers>} State the model's parameters by name */

/** @param {Numbers} matrix [rows,columns] @returns {{ data: Float32Array, shape: number[] }} [columns,rows] */
function transposed({ data, shape: [rows, columns] }) {
  const turned = new Float32Array(data.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) turned[j * rows + i] = data[i * columns + j];
  return { data: turned, shape: [columns, rows] };
}

/**
 * Layer normalisation of each row (Ba et al., 2016).
 * @param {Numbers} x [1,L,E]
 * @param {State} state
 * @param {string} name
 * @param {number} epsilon
 * @returns {Numbers}
 */
function normalised(x, state, name, epsilon) {
  const size = x.shape[x.shape.length - 1];
  const gain = state[`${name}.weight`].data;
  const shift = state[`${name}.bias`].data;
  const data = new Float32Array(x.data.length);
  for (let start = 0; start < data.length; start += size) {
    const row = x.data.subarray(start, start + size);
    const mean = row.reduce((sum, value) => sum + value, 0) / size;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / size;
    for (let i = 0; i < size; i++)
      data[start + i] = ((row[i] - mean) / Math.sqrt(variance + epsilon)) * gain[i] + shift[i];
  }
  return { data, shape: x.shape };
}

/**
 * One attention of a model as a layer of its own. The caller disposes of it.
 * @param {Engine} engine
 * @param {{ embedDim: number, numHeads: number }} config
 * @param {State} state
 * @param {string} name
 */
async function attentionOf(engine, { embedDim, numHeads }, state, name) {
  const layer = engine.multiHeadAttention({ embedDim, numHeads });
  await layer.loadTorch({
    in_proj_weight: state[`${name}.in_proj_weight`],
    in_proj_bias: state[`${name}.in_proj_bias`],
    'out_proj.weight': state[`${name}.out_proj.weight`],
    'out_proj.bias': state[`${name}.out_proj.bias`],
  });
  return layer;
}

/**
 * The steps of `walkThrough` in ../transformer.mjs, with a trained model's weights and its own translation as target.
 * @param {Engine} engine
 * @param {import('headwise').Transformer} model an encoder-decoder of this example, of the same engine
 * @param {ReturnType<typeof import('./lesson.mjs').translationLesson>} task
 * @param {string} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<Awaited<ReturnType<typeof import('../transformer.mjs').walkThrough>>>}
 */
export async function walkTrained(engine, model, task, source, signal) {
  const clock = new Clock();
  const { config } = model;
  const { embedDim: size, numHeads: heads, encoderLayers, epsilon } = config;
  const sizes = { embedding: size, query: size / heads, heads };
  const state = await model.getWeights();
  const { sourceWords, targetWords } = await task.translate(model, source, signal);
  const total = sourceWordsOf(source).length + 1;

  /**
   * @param {string[]} words
   * @param {import('../learning/vocabulary.mjs').Vocabulary} vocabulary
   * @param {'source' | 'target'} name
   * @param {number} all
   */
  const encode = async (words, vocabulary, name, all) => {
    const padded = padTokens(words, words.length + 1);
    const L = words.length + 1;
    const ids = Int32Array.from(vocabulary.encode([...words, PAD]));
    const table = state[`${name}_embedding.weight`];
    const found = await clock.time(`${name}.embedding`, () =>
      engine.embedding([Array.from(ids)], table),
    );
    // As published: token embeddings times √E before positions are added.
    const embedding = {
      data: found.data.map((value) => value * Math.sqrt(size)),
      shape: found.shape,
    };
    const position = await clock.time(`${name}.position`, () => engine.positionalEncoding(L, size));
    const input = reshape(add(reshape(embedding, [L, size]), position), [1, L, size]);
    const { keep, valid } = padded;
    return {
      tokens: [...words, '<pad>'],
      ids,
      valid,
      total: all,
      keep,
      embedding,
      position,
      input,
    };
  };
  const from = await encode([...sourceWords, END], task.english, 'source', total);
  const to = await encode([BEGIN, ...targetWords], task.spanish, 'target', targetWords.length + 1);
  const S = from.tokens.length;
  const keyPaddingMask = { data: from.keep, shape: [1, S] };

  /** @param {Numbers} x @param {string} name */
  const feedForward = async (x, name) => {
    const inner = await engine.linear(
      x,
      transposed(state[`${name}.linear1.weight`]),
      state[`${name}.linear1.bias`],
    );
    const rectified = { data: inner.data.map((value) => Math.max(0, value)), shape: inner.shape };
    return engine.linear(
      rectified,
      transposed(state[`${name}.linear2.weight`]),
      state[`${name}.linear2.bias`],
    );
  };
  /** @param {import('../transformer.mjs').Apart} parts @param {string} name */
  const apart = async (parts, name) => {
    const layer = await attentionOf(engine, config, state, name);
    try {
      return await takeApart(engine, layer, sizes, { ...parts, clock, signal });
    } finally {
      layer.dispose();
    }
  };

  const encoder = await apart(
    {
      kind: 'encoder',
      queries: from,
      keys: from,
      queryInput: from.input,
      keyInput: from.input,
      causal: false,
    },
    'encoder.layers.0.self_attn',
  );
  let memory = /** @type {Numbers} */ (from.input);
  for (let i = 0; i < encoderLayers; i++) {
    const name = `encoder.layers.${i}`;
    const layer = await attentionOf(engine, config, state, `${name}.self_attn`);
    try {
      const { output } = await layer.forward(memory, memory, memory, { keyPaddingMask, signal });
      memory = normalised(add(memory, output), state, `${name}.norm1`, epsilon);
      memory = normalised(
        add(memory, await feedForward(memory, name)),
        state,
        `${name}.norm2`,
        epsilon,
      );
    } finally {
      layer.dispose();
    }
  }
  const decoder = await apart(
    {
      kind: 'decoder',
      queries: to,
      keys: to,
      queryInput: to.input,
      keyInput: to.input,
      causal: true,
    },
    'decoder.layers.0.self_attn',
  );
  const queryInput = normalised(
    add(to.input, decoder.output),
    state,
    'decoder.layers.0.norm1',
    epsilon,
  );
  const cross = await apart(
    { kind: 'cross', queries: to, keys: from, queryInput, keyInput: memory, causal: false },
    'decoder.layers.0.multihead_attn',
  );
  return { source: from, target: to, encoder, decoder, cross, sizes, timings: clock.timings };
}
