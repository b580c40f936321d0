// Example logic: document 002's variants. Heads concatenated or summed, dense or convolutional transforms, four kinds of score.
import { Clock } from './clock.mjs';
import { TOKEN_LIMIT, buildVocabulary, tokenize } from './tokens.mjs';
import { add, reshape } from './matrix.mjs';

/** Embedding size; 1, 2, 3 and 6 heads divide it. */
export const VARIANT_SIZE = 6;
export const HEAD_COUNTS = [1, 2, 3, 6];

/** What can be chosen, by the names that the layer's options have. */
export const CHOICES = /** @type {const} */ ({
  merge: ['concat', 'sum'],
  projection: ['dense', 'conv'],
  score: ['scaled-dot', 'dot', 'cosine', 'additive'],
});

/**
 * @typedef {object} Variant
 * @property {typeof CHOICES.merge[number]} merge
 * @property {typeof CHOICES.projection[number]} projection
 * @property {typeof CHOICES.score[number]} score
 * @property {number} heads
 */

/** The layer as everybody knows it. */
export const PLAIN_VARIANT = /** @type {Variant} */ ({
  merge: 'concat',
  projection: 'dense',
  score: 'scaled-dot',
  heads: 2,
});

/**
 * The layer's options for a variant.
 * @param {Variant} variant
 * @param {number} [seed]
 * @returns {import('headwise').MultiHeadAttentionConfig}
 */
export function layerOptions(variant, seed = 1) {
  return {
    embedDim: VARIANT_SIZE,
    numHeads: variant.heads,
    merge: variant.merge,
    projection:
      variant.projection === 'conv' ? { type: 'conv', kernelSize: 3, causal: false } : 'dense',
    score: variant.score,
    seed,
  };
}

/**
 * @typedef {object} VariantResult
 * @property {Variant} variant
 * @property {string[]} tokens
 * @property {number} total
 * @property {import('./matrix.mjs').Numbers} weights [1,H,L,L]
 * @property {import('./matrix.mjs').Numbers} output [1,L,E]
 * @property {{ name: string, shape: readonly number[] }[]} kernels
 * @property {number} parameters how many numbers the layer holds
 * @property {import('./clock.mjs').Timing[]} timings
 */

/**
 * Self-attention over a sentence with one variant of the layer.
 * @param {import('headwise').Engine} engine
 * @param {string} text
 * @param {Variant} variant
 * @param {{ seed?: number, limit?: number, signal?: AbortSignal }} [options]
 * @returns {Promise<VariantResult | null>} null for an empty sentence
 */
export async function runVariant(engine, text, variant, options = {}) {
  const { seed = 1, limit = TOKEN_LIMIT, signal } = options;
  const { tokens, total } = tokenize(text, limit);
  if (tokens.length === 0) return null;
  const clock = new Clock();
  const L = tokens.length;
  const { table, ids } = buildVocabulary([tokens], VARIANT_SIZE, seed);
  const words = await engine.embedding([Array.from(ids[0])], table);
  const places = await engine.positionalEncoding(L, VARIANT_SIZE);
  const x = reshape(add(reshape(words, [L, VARIANT_SIZE]), places), [1, L, VARIANT_SIZE]);
  const layer = engine.multiHeadAttention(layerOptions(variant, seed));
  try {
    const { output, weights } = await clock.time('variant.layer', () =>
      layer.forward(x, x, x, { returnWeights: true, signal }),
    );
    if (!weights) throw new Error('the core left out the weights');
    const held = await layer.getWeights();
    const kernels = [];
    let parameters = 0;
    for (const [name, part] of Object.entries(held)) {
      if (!part) continue;
      kernels.push({ name, shape: part.kernel.shape });
      parameters +=
        part.kernel.data.length + ('bias' in part && part.bias ? part.bias.data.length : 0);
    }
    return { variant, tokens, total, weights, output, kernels, parameters, timings: clock.timings };
  } finally {
    layer.dispose();
  }
}
