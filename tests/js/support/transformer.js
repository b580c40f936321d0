// Tests: small Transformers, a task that they learn, and what their tests have in common.
import { randomSource } from './random.js';

export const tensor = (data, shape) => ({ data: Float32Array.from(data), shape });

/** Source digits 1…5 come back in reverse, behind the start token 0 and before the end token 6. */
export function reversals(count, length, seed) {
  const next = randomSource(seed);
  const source = Array.from({ length: count }, () =>
    Array.from({ length }, () => 1 + Math.floor(next() * 5)),
  );
  const answers = source.map((row) => [...row].reverse());
  return {
    source,
    target: answers.map((row) => [0, ...row]),
    labels: answers.map((row) => [...row, 6]),
  };
}

export const small = {
  kind: 'encoder-decoder',
  embedDim: 16,
  numHeads: 2,
  feedForwardDim: 32,
  encoderLayers: 1,
  decoderLayers: 1,
  sourceVocabulary: 6,
  targetVocabulary: 7,
  maxLength: 8,
  normFirst: true,
};

export async function* batches(steps, from = 1) {
  for (let i = from; i < from + steps; i++) yield reversals(16, 3, i);
}

export const decoderOnly = {
  ...small,
  kind: 'decoder',
  encoderLayers: undefined,
  sourceVocabulary: undefined,
  decoderLayers: 2,
};
export const deeper = { ...small, decoderLayers: 2 };

/** A model off its start values by up to `by`, so that no part of it is left out unseen. */
export async function shaken(engine, config, by = 0.5) {
  const model = engine.transformer(config);
  const next = randomSource(11);
  const weights = await model.getWeights();
  for (const [name, { data, shape }] of Object.entries(weights)) {
    if (name.endsWith('running_var')) continue;
    weights[name] = tensor(
      data.map((value) => value + by * (2 * next() - 1)),
      shape,
    );
  }
  await model.setWeights(weights);
  return model;
}
