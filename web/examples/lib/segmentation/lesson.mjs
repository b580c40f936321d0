// Example logic: learning to see. An encoder on patches of a picture gives each patch its class.
import { cosineRate, likeliest } from '../learning/lesson.mjs';
import { IntersectionOverUnion } from '../learning/metrics.mjs';
import { CLASSES, PATCHES, PATCH_SIZE, makeScene, patchesOf } from './scenes.mjs';

/** @typedef {import('headwise').Transformer} Transformer */
/** @typedef {import('./scenes.mjs').Scene} Scene */
/** @typedef {{ meanIoU: number, perClass: number[] }} Measures over unseen scenes */

const BATCH = 8;
const STEPS = 40;
const EPOCHS = 15;
const SEED = 1;
/** Scenes of seeds from here on are never learned. */
export const UNSEEN = 1_000_000;
/** So many unseen scenes are measured after each epoch. */
const MEASURED = 40;

/**
 * Classes of the patches of scenes.
 * @param {Transformer} model
 * @param {readonly Scene[]} scenes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Int32Array>} [B · PATCHES]
 */
export async function segment(model, scenes, signal) {
  const logits = await model.forward({ patches: patchesOf(scenes) }, { signal });
  return likeliest(logits.data, CLASSES.length);
}

/**
 * @param {Transformer} model
 * @param {number} count of unseen scenes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Measures>}
 */
export async function measureUnseen(model, count, signal) {
  const measure = new IntersectionOverUnion(CLASSES.length);
  for (let first = 0; first < count; first += BATCH) {
    const scenes = Array.from({ length: Math.min(BATCH, count - first) }, (_, i) =>
      makeScene(UNSEEN + first + i),
    );
    const classes = await segment(model, scenes, signal);
    scenes.forEach(({ truth }, i) =>
      measure.add(classes.subarray(i * PATCHES, (i + 1) * PATCHES), truth),
    );
  }
  return { meanIoU: measure.mean(), perClass: measure.perClass() };
}

export function segmentationLesson() {
  return {
    /** @type {import('../learning/lesson.mjs').Lesson<Measures>} */
    lesson: {
      config: {
        kind: 'encoder',
        embedDim: 48,
        numHeads: 4,
        feedForwardDim: 96,
        encoderLayers: 2,
        patchDim: PATCH_SIZE,
        targetVocabulary: CLASSES.length,
        maxLength: PATCHES,
        normFirst: true,
        activation: 'gelu',
        positions: 'learned',
        seed: SEED,
      },
      epochs: EPOCHS,
      stepsPerEpoch: STEPS,
      options: {
        optimizer: 'adamw',
        learningRate: cosineRate(4e-3, 50, EPOCHS * STEPS),
        betas: [0.9, 0.98],
        weightDecay: 0.01,
        maxGradientNorm: 1,
      },
      *batches(epoch) {
        for (let step = 0; step < STEPS; step++) {
          const first = (epoch * STEPS + step) * BATCH;
          const scenes = Array.from({ length: BATCH }, (_, i) => makeScene(first + i));
          const labels = new Int32Array(BATCH * PATCHES);
          scenes.forEach(({ truth }, i) => labels.set(truth, i * PATCHES));
          yield { patches: patchesOf(scenes), labels: { data: labels, shape: [BATCH, PATCHES] } };
        }
      },
      measure: (model, signal) => measureUnseen(model, MEASURED, signal),
    },
  };
}
