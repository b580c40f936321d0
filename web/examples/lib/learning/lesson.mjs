// Example logic: a lesson is all that a model needs to learn one thing: its sizes, batches, rates and marks. `learn` gives it,
// step by step; whoever reads the steps pauses it by not asking for the next one.

/** @typedef {import('headwise').Transformer} Transformer */
/** @typedef {import('headwise').TrainingBatch} TrainingBatch */
/** @typedef {import('headwise').TrainingProgress} TrainingProgress */

/**
 * @template Measures
 * @typedef {object} Lesson
 * @property {import('headwise').TransformerConfig} config
 * @property {number} epochs
 * @property {number} stepsPerEpoch
 * @property {import('headwise').TrainingOptions} options
 * @property {(epoch: number) => Iterable<TrainingBatch>} batches of an epoch, counted from 0
 * @property {(model: Transformer, signal?: AbortSignal) => Promise<Measures>} measure by what was kept back
 */

/**
 * @template Measures
 * @typedef {{ kind: 'step', epoch: number, progress: TrainingProgress } |
 *   { kind: 'epoch', epoch: number, seconds: number, measures: Measures }} LessonEvent epochs here are counted from 1; seconds
 *   are of training alone, measuring and pauses left out
 */

/**
 * A linear warm-up, then half a cosine down to a tenth.
 * @param {number} peak
 * @param {number} warmup steps
 * @param {number} total steps
 * @returns {(step: number) => number} steps are counted from 1
 */
export function cosineRate(peak, warmup, total) {
  return (step) => {
    if (step <= warmup) return (peak * step) / warmup;
    const share = Math.min(1, (step - warmup) / Math.max(1, total - warmup));
    return peak * (0.1 + 0.45 * (1 + Math.cos(Math.PI * share)));
  };
}

/**
 * Trains a model, epoch after epoch, and measures it after each. Where the model has been trained before, it goes on with the
 * epoch in which it stood.
 * @template Measures
 * @param {Transformer} model
 * @param {Lesson<Measures>} lesson
 * @param {AbortSignal} [signal] rejects with its reason; the model keeps what it has learned
 * @returns {AsyncGenerator<LessonEvent<Measures>, void, undefined>}
 */
export async function* learn(model, lesson, signal) {
  let seconds = 0;
  for (let epoch = Math.floor(model.step / lesson.stepsPerEpoch); epoch < lesson.epochs; epoch++) {
    let start = performance.now();
    for await (const progress of model.train(lesson.batches(epoch), {
      ...lesson.options,
      signal,
    })) {
      seconds += (performance.now() - start) / 1000;
      yield { kind: 'step', epoch: epoch + 1, progress };
      start = performance.now();
    }
    const measures = await lesson.measure(model, signal);
    yield { kind: 'epoch', epoch: epoch + 1, seconds, measures };
  }
}

/** The class with the largest logit in each row; the lowest of equals. @param {Float32Array} logits @param {number} classes */
export function likeliest(logits, classes) {
  return Int32Array.from({ length: logits.length / classes }, (_, row) => {
    let best = row * classes;
    for (let i = best + 1; i < (row + 1) * classes; i++) if (logits[i] > logits[best]) best = i;
    return best - row * classes;
  });
}
