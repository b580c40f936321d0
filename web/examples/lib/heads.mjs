// Example logic: four heads whose weights are set by hand, so that what a head can do may be read off its map. A trained model
// finds such weights itself; "the word before" and "the same word" are among the first that it finds.
//
// A token is a word vector beside a sinusoidal position vector. Sine and cosine of a position shifted by n are a rotation of
// those of the position (Vaswani et al., 2017, section 3.5), so a query kernel made of rotations asks for "n places from me".
import { Clock } from './clock.mjs';
import { reshape } from './matrix.mjs';
import { TOKEN_LIMIT, buildVocabulary, tokenize } from './tokens.mjs';

/** Entries of the word part and of the position part; also the size of a head. */
const PART = 32;
const WIDTH = 2 * PART;

/** The heads in order: what each looks for. */
export const HAND_SET_HEADS = /** @type {const} */ (['previous', 'next', 'same', 'nearby']);

/**
 * Writes one head of a kernel [WIDTH,H,PART]: the rotation of every sine and cosine pair by `shift` positions, times `gain`.
 * @param {Float32Array} kernel
 * @param {number} head
 * @param {number} shift
 * @param {number} gain
 */
function writeRotation(kernel, head, shift, gain) {
  const at = (/** @type {number} */ row, /** @type {number} */ column) =>
    ((PART + row) * HAND_SET_HEADS.length + head) * PART + column;
  for (let pair = 0; pair < PART; pair += 2) {
    const angle = shift / 10000 ** (pair / PART);
    // sin(p + s) = sin p · cos s + cos p · sin s, cos(p + s) = cos p · cos s − sin p · sin s
    kernel[at(pair, pair)] = gain * Math.cos(angle);
    kernel[at(pair + 1, pair)] = gain * Math.sin(angle);
    kernel[at(pair, pair + 1)] = -gain * Math.sin(angle);
    kernel[at(pair + 1, pair + 1)] = gain * Math.cos(angle);
  }
}

/**
 * Writes one head of a kernel [WIDTH,H,PART]: the word part as it is, times `gain`.
 * @param {Float32Array} kernel
 * @param {number} head
 * @param {number} gain
 */
function writeWords(kernel, head, gain) {
  for (let i = 0; i < PART; i++) kernel[(i * HAND_SET_HEADS.length + head) * PART + i] = gain;
}

/** The layer's weights, in the form of `setWeights`. */
function handSetWeights() {
  const heads = HAND_SET_HEADS.length;
  const kernel = () => new Float32Array(WIDTH * heads * PART);
  const query = kernel();
  const key = kernel();
  const value = kernel();
  // The layer divides scores by √PART; the gains undo that and set how sharp a head is.
  const sharp = 8 * Math.sqrt(PART);
  writeRotation(query, 0, -1, sharp);
  writeRotation(query, 1, +1, sharp);
  // Word vectors have a squared length of about PART.
  writeWords(query, 2, sharp / PART);
  writeRotation(query, 3, 0, sharp / 8);
  [0, 1, 3].forEach((head) => writeRotation(key, head, 0, 1));
  writeWords(key, 2, 1);
  // Every head passes the words on that it found.
  for (let head = 0; head < heads; head++) writeWords(value, head, 1);
  const output = new Float32Array(heads * PART * WIDTH);
  for (let row = 0; row < heads * PART; row++) output[row * WIDTH + (row % PART)] = 1 / heads;
  const shape = [WIDTH, heads, PART];
  return {
    query: { kernel: { data: query, shape } },
    key: { kernel: { data: key, shape } },
    value: { kernel: { data: value, shape } },
    output: { kernel: { data: output, shape: [heads, PART, WIDTH] } },
  };
}

/**
 * What the four heads look at in a sentence.
 * @param {import('headwise').Engine} engine
 * @param {string} text
 * @param {{ limit?: number, signal?: AbortSignal }} [options]
 * @returns {Promise<{ tokens: string[], total: number, weights: import('./matrix.mjs').Numbers | null,
 *   timings: import('./clock.mjs').Timing[] }>} weights [1,4,L,L], null for an empty sentence
 */
export async function lookWithHandSetHeads(engine, text, options = {}) {
  const { limit = TOKEN_LIMIT, signal } = options;
  const { tokens, total } = tokenize(text, limit);
  if (tokens.length === 0) return { tokens, total, weights: null, timings: [] };
  const clock = new Clock();
  const L = tokens.length;
  const { table, ids } = buildVocabulary([tokens], PART);
  const words = await clock.time('intro.embedding', () =>
    engine.embedding([Array.from(ids[0])], table),
  );
  const places = await clock.time('intro.position', () => engine.positionalEncoding(L, PART));
  const data = new Float32Array(L * WIDTH);
  for (let i = 0; i < L; i++) {
    data.set(words.data.subarray(i * PART, (i + 1) * PART), i * WIDTH);
    data.set(places.data.subarray(i * PART, (i + 1) * PART), i * WIDTH + PART);
  }
  const x = reshape({ data, shape: [L * WIDTH] }, [1, L, WIDTH]);
  const layer = engine.multiHeadAttention({
    embedDim: WIDTH,
    numHeads: HAND_SET_HEADS.length,
    headDim: PART,
    bias: false,
  });
  try {
    await layer.setWeights(handSetWeights());
    const { weights } = await clock.time('intro.layer', () =>
      layer.forward(x, x, x, { returnWeights: true, signal }),
    );
    return { tokens, total, weights: weights ?? null, timings: clock.timings };
  } finally {
    layer.dispose();
  }
}
