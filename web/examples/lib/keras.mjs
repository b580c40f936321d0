// Example logic: the Keras layers of documents 000 and 002 and tf.keras.layers.MultiHeadAttention, fed the weights that real
// TensorFlow had, and held against the numbers that it gave. The stored cases are in tests/fixtures.
import { Clock } from './clock.mjs';
import { largestDifference } from './matrix.mjs';

/** @typedef {{ shape: number[], float32?: string, int32?: string, bool?: string }} StoredTensor */
/**
 * @typedef {object} StoredCase
 * @property {string} name
 * @property {Record<string, any>} config
 * @property {Record<string, StoredTensor>} inputs
 * @property {StoredTensor[]} weights
 * @property {Record<string, StoredTensor>} outputs
 */

/**
 * Base64 of little-endian floats to a tensor.
 * @param {StoredTensor} stored
 * @returns {{ data: Float32Array, shape: number[] }}
 */
export function decode(stored) {
  if (stored.float32 === undefined) throw new TypeError('not a stored float tensor');
  const text = atob(stored.float32);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return { data: new Float32Array(bytes.buffer), shape: stored.shape };
}

/**
 * @typedef {object} KerasResult
 * @property {string} name
 * @property {import('./matrix.mjs').Numbers} output ours
 * @property {import('./matrix.mjs').Numbers} expected TensorFlow's
 * @property {import('./matrix.mjs').Numbers | null} weights ours, where the layer returns them
 * @property {number} difference largest absolute difference, weights included
 * @property {import('./clock.mjs').Timing[]} timings
 */

/**
 * Runs one stored case.
 * @param {import('headwise').Engine} engine
 * @param {StoredCase} stored
 * @param {(layer: import('headwise').MultiHeadAttention, inputs: Record<string, { data: Float32Array, shape: number[] }>) =>
 *   Promise<{ output: import('./matrix.mjs').Numbers, weights?: import('./matrix.mjs').Numbers | null }>} call
 * @param {import('headwise').MultiHeadAttentionConfig} options
 * @returns {Promise<KerasResult>}
 */
async function compare(engine, stored, options, call) {
  const clock = new Clock();
  const inputs = Object.fromEntries(
    Object.entries(stored.inputs).map(([name, tensor]) => [name, decode(tensor)]),
  );
  const layer = engine.multiHeadAttention(options);
  try {
    await layer.loadKeras(stored.weights.map(decode));
    const { output, weights } = await clock.time(`keras.${stored.name}`, () => call(layer, inputs));
    const expected = decode(stored.outputs.output);
    let difference = largestDifference(output.data, expected.data);
    if (weights && stored.outputs.weights) {
      const theirs = decode(stored.outputs.weights);
      difference = Math.max(difference, largestDifference(weights.data, theirs.data));
    }
    const { name } = stored;
    return { name, output, expected, weights: weights ?? null, difference, timings: clock.timings };
  } finally {
    layer.dispose();
  }
}

/**
 * Document 000: `call(v, k, q)`, no mask, returns the output alone.
 * @param {import('headwise').Engine} engine
 * @param {StoredCase} stored
 */
export function runDocument000(engine, stored) {
  const { embedDim, numHeads } = stored.config;
  return compare(engine, stored, { embedDim, numHeads }, (layer, { q, k, v }) =>
    layer.forward(q, k, v),
  );
}

/**
 * Document 002: `call(q, k, v, mask)`, adds `mask · −1e9` to the scores, returns output and weights. Its mask says 1 = hide.
 * Adding is what it does, so adding is what reproduces it to the last digit, rows in which every key is hidden included.
 * @param {import('headwise').Engine} engine
 * @param {StoredCase} stored
 */
export function runDocument002(engine, stored) {
  const { embedDim, numHeads } = stored.config;
  return compare(engine, stored, { embedDim, numHeads }, (layer, { q, k, v, mask }) => {
    const bias = mask && { data: mask.data.map((hide) => hide * -1e9), shape: mask.shape };
    return layer.forward(q, k, v, { ...(bias ? { bias } : {}), returnWeights: true });
  });
}

/**
 * tf.keras.layers.MultiHeadAttention, scores returned.
 * @param {import('headwise').Engine} engine
 * @param {StoredCase} stored without mask arguments, or with `use_causal_mask` (Keras aligns it top-left: offset 0)
 */
export function runKerasLayer(engine, stored) {
  return compare(engine, stored, stored.config.layer, (layer, { query, key, value }) =>
    layer.forward(query, key, value, {
      ...(stored.config.keras.use_causal_mask ? { causal: true, causalOffset: 0 } : {}),
      returnWeights: true,
    }),
  );
}

/**
 * Finds a case of a fixture file by name.
 * @param {{ cases: StoredCase[] }} fixture
 * @param {string} name
 * @returns {StoredCase}
 */
export function caseNamed(fixture, name) {
  const found = fixture.cases.find((stored) => stored.name === name);
  if (!found) throw new RangeError(`the fixture holds no case "${name}"`);
  return found;
}
