// Example logic: document 001 step by step, with its own sizes. Every product, score and softmax is a call of the core; this
// file only names the steps and moves numbers about. Start reading at `walkThrough`.
import { Clock } from './clock.mjs';
import { largestDifference, reshape, swapHeads, add } from './matrix.mjs';
import { TOKEN_LIMIT, buildVocabulary, padTokens, tokenize } from './tokens.mjs';

/** The article's hyper-parameters: embedding size E, query size D = E / heads, heads H. */
export const SIZES = { embedding: 6, query: 3, heads: 2 };

/** The article's training sample: English in, Spanish out. */
export const SAMPLE = { source: 'You are welcome', target: 'De nada' };

/** @typedef {import('headwise').Engine} Engine */
/** @typedef {import('./matrix.mjs').Numbers} Numbers */

/**
 * @typedef {object} Sequence one side of the sample, padded by one token at least so that the padding mask has work to do
 * @property {string[]} tokens
 * @property {Int32Array} ids
 * @property {number} valid how many tokens are real
 * @property {number} total how many the text had before the limit
 * @property {Uint8Array} keep [L], 1 where the token is real
 * @property {Numbers} embedding [1,L,E]
 * @property {Numbers} position [L,E]
 * @property {Numbers} input [1,L,E], the sum of the two
 */

/**
 * @typedef {object} AttentionSteps one attention, taken apart
 * @property {'encoder' | 'decoder' | 'cross'} kind
 * @property {Sequence} queries
 * @property {Sequence} keys
 * @property {{ query: Numbers, key: Numbers, value: Numbers, output: Numbers }} kernels each [E,E]
 * @property {Numbers} q [1,L,E]
 * @property {Numbers} k [1,S,E]
 * @property {Numbers} v [1,S,E]
 * @property {Numbers} qSplit [1,L,H,D]: the same numbers as q, in the same order
 * @property {Numbers} qHeads [1,H,L,D]
 * @property {Numbers} kHeads [1,H,S,D]
 * @property {Numbers} vHeads [1,H,S,D]
 * @property {Numbers} products [1,H,L,S]: Q·Kᵀ
 * @property {Numbers} masked [1,H,L,S]: −∞ where hidden
 * @property {Numbers} scaled [1,H,L,S]: divided by √D
 * @property {Numbers} weights [1,H,L,S]: after the softmax
 * @property {Numbers} headOutputs [1,H,L,D]
 * @property {Numbers} merged [1,L,E]
 * @property {Numbers} output [1,L,E]: merged, through the output layer
 * @property {number} difference largest difference to the layer called once
 */

/**
 * Text to vectors: ids, embedding, position encoding, their sum.
 * @param {Engine} engine
 * @param {{ tokens: string[], total: number }} text
 * @param {Int32Array} ids of the padded tokens
 * @param {number} length L
 * @param {Numbers} table [V,E]
 * @param {Clock} clock
 * @param {string} name
 * @returns {Promise<Sequence>}
 */
async function encode(engine, text, ids, length, table, clock, name) {
  const { tokens, valid, keep } = padTokens(text.tokens, length);
  const size = table.shape[1];
  const embedding = await clock.time(`${name}.embedding`, () =>
    engine.embedding(reshapeIds(ids), table),
  );
  const position = await clock.time(`${name}.position`, () =>
    engine.positionalEncoding(length, size),
  );
  const flat = add(reshape(embedding, [length, size]), position);
  const input = reshape(flat, [1, length, size]);
  return { tokens, ids, valid, total: text.total, keep, embedding, position, input };
}

/** @param {Int32Array} ids @returns {number[][]} a batch of one */
function reshapeIds(ids) {
  return [Array.from(ids)];
}

/**
 * @typedef {{ kind: 'encoder' | 'decoder' | 'cross', queries: Sequence, keys: Sequence, queryInput: Numbers,
 *   keyInput: Numbers, causal: boolean }} Apart what one attention is given
 */

/** @typedef {{ embedding: number, query: number, heads: number }} Sizes */

/**
 * One multi-head attention, step after step.
 * @param {Engine} engine
 * @param {import('headwise').MultiHeadAttention} layer of these sizes
 * @param {Sizes} sizes
 * @param {Apart & { clock: Clock, signal?: AbortSignal }} parts
 * @returns {Promise<AttentionSteps>}
 */
export async function takeApart(engine, layer, sizes, parts) {
  const { kind, queries, keys, queryInput, keyInput, causal, clock, signal } = parts;
  const { embedding: size, heads, query: headSize } = sizes;
  const L = queries.tokens.length;
  const S = keys.tokens.length;
  const name = (/** @type {string} */ step) => `${kind}.${step}`;
  // The layer's kernels are [E,H,D] and [H,D,E]: the heads lie side by side in one matrix, which is what the article means
  // by a split that is logical only.
  const w = await layer.getWeights();
  const kernels = {
    query: reshape(w.query.kernel, [size, size]),
    key: reshape(w.key.kernel, [size, size]),
    value: reshape(w.value.kernel, [size, size]),
    output: reshape(w.output.kernel, [size, size]),
  };
  const bias = (/** @type {Numbers | undefined} */ b) => b && reshape(b, [size]);

  const q = await clock.time(name('linear-q'), () =>
    engine.linear(queryInput, kernels.query, bias(w.query.bias)),
  );
  const k = await clock.time(name('linear-k'), () =>
    engine.linear(keyInput, kernels.key, bias(w.key.bias)),
  );
  const v = await clock.time(name('linear-v'), () =>
    engine.linear(keyInput, kernels.value, bias(w.value.bias)),
  );

  const qSplit = reshape(q, [1, L, heads, headSize]);
  const qHeads = swapHeads(qSplit);
  const kHeads = swapHeads(reshape(k, [1, S, heads, headSize]));
  const vHeads = swapHeads(reshape(v, [1, S, heads, headSize]));

  const mask = { keyPaddingMask: { data: keys.keep, shape: [1, S] }, causal, signal };
  const raw = await clock.time(name('scores'), () =>
    engine.attention(qHeads, kHeads, vHeads, { scale: 1, returnScores: 'raw', signal }),
  );
  const hidden = await clock.time(name('mask'), () =>
    engine.attention(qHeads, kHeads, vHeads, { ...mask, scale: 1, returnScores: 'masked' }),
  );
  const whole = await clock.time(name('attention'), () =>
    engine.attention(qHeads, kHeads, vHeads, {
      ...mask,
      returnScores: 'masked',
      returnWeights: true,
    }),
  );

  const merged = reshape(swapHeads(whole.output), [1, L, size]);
  const output = await clock.time(name('output'), () =>
    engine.linear(merged, kernels.output, bias(w.output.bias)),
  );
  const atOnce = await clock.time(name('layer'), () =>
    layer.forward(queryInput, keyInput, keyInput, mask),
  );
  return {
    kind,
    queries,
    keys,
    kernels,
    q,
    k,
    v,
    qSplit,
    qHeads,
    kHeads,
    vHeads,
    products: given(raw.scores),
    masked: given(hidden.scores),
    scaled: given(whole.scores),
    weights: given(whole.weights),
    headOutputs: whole.output,
    merged,
    output,
    difference: largestDifference(output.data, atOnce.output.data),
  };
}

/** @template T @param {T | undefined | null} value @returns {T} what was asked for by an option, and so is there */
function given(value) {
  if (value === undefined || value === null)
    throw new Error('the core left out what was asked for');
  return value;
}

/**
 * The three attentions of a Transformer on one sample. Residual connections, layer normalisation and feed-forward layers lie
 * between them in a real model and are left out here: the encoder's attention feeds the encoder–decoder attention directly.
 * @param {Engine} engine
 * @param {{ source?: string, target?: string, seed?: number, limit?: number, signal?: AbortSignal }} [options]
 * @returns {Promise<{ source: Sequence, target: Sequence, encoder: AttentionSteps, decoder: AttentionSteps,
 *   cross: AttentionSteps, sizes: Sizes, timings: import('./clock.mjs').Timing[] }>}
 */
export async function walkThrough(engine, options = {}) {
  const { seed = 1, limit = TOKEN_LIMIT, signal } = options;
  const clock = new Clock();
  const texts = [
    tokenize(options.source ?? SAMPLE.source, limit),
    tokenize(options.target ?? SAMPLE.target, limit),
  ];
  const padded = texts.map(({ tokens }) => padTokens(tokens, tokens.length + 1).tokens);
  const { table, ids } = buildVocabulary(padded, SIZES.embedding, seed);
  const source = await encode(engine, texts[0], ids[0], padded[0].length, table, clock, 'source');
  const target = await encode(engine, texts[1], ids[1], padded[1].length, table, clock, 'target');
  signal?.throwIfAborted();

  /** @param {number} layerSeed @param {Apart} parts */
  const apart = async (layerSeed, parts) => {
    const { embedding, heads } = SIZES;
    const layer = engine.multiHeadAttention({
      embedDim: embedding,
      numHeads: heads,
      seed: layerSeed,
    });
    try {
      return await takeApart(engine, layer, SIZES, { ...parts, clock, signal });
    } finally {
      layer.dispose();
    }
  };
  const encoder = await apart(seed, {
    kind: 'encoder',
    queries: source,
    keys: source,
    queryInput: source.input,
    keyInput: source.input,
    causal: false,
  });
  const decoder = await apart(seed + 1, {
    kind: 'decoder',
    queries: target,
    keys: target,
    queryInput: target.input,
    keyInput: target.input,
    causal: true,
  });
  const cross = await apart(seed + 2, {
    kind: 'cross',
    queries: target,
    keys: source,
    queryInput: decoder.output,
    keyInput: encoder.output,
    causal: false,
  });
  return { source, target, encoder, decoder, cross, sizes: SIZES, timings: clock.timings };
}
