// Bench: what a training step is given, the same for every contender: tokens, start values by the parameters' names, and Adam's
// rate. Post-norm and ReLU as published, sinusoidal positions, no dropout; every label counts.
import { fill } from './inputs.mjs';

/** Adam's, with its usual betas and epsilon 1e-8. */
export const learningRate = 1e-3;

const tokens = (count, vocabulary, seed) =>
  Int32Array.from(fill(count, seed), (x) => Math.floor(((x + 1) / 2) * vocabulary));

/** @param {import('./shapes.mjs').Shape} shape */
export function trainingBatch({ config, batch, sourceLength: S, targetLength: L }) {
  const { sourceVocabulary, targetVocabulary } = config;
  const made = {
    target: { data: tokens(batch * L, targetVocabulary, 1), shape: [batch, L] },
    labels: { data: tokens(batch * L, targetVocabulary, 2), shape: [batch, L] },
  };
  if (S > 0) made.source = { data: tokens(batch * S, sourceVocabulary, 3), shape: [batch, S] };
  return made;
}

/** Start values of a parameter: matrices of variance 1/columns, gains around 1, biases around 0. */
export function startValues(name, shape) {
  let seed = 7;
  for (const letter of name) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0;
  const drawn = fill(
    shape.reduce((a, b) => a * b, 1),
    seed,
  );
  if (shape.length === 2) return drawn.map((x) => x * Math.sqrt(3 / shape[1]));
  return drawn.map((x) => Number(/norm.*weight/.test(name)) + 0.1 * x);
}
