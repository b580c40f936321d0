// Demo: the sample that the walk-through and the three attentions share, and its latest results.
import { createSignal } from './signal.ts';
import { LiveRun } from './live-run.ts';
import { engineState, walkTimings } from './engine-host.ts';
import { walkTrained } from '../../examples/lib/translation/walk.mjs';
import { walkModel } from './learning/walk-model.ts';
import { translationClass } from './learning/translation-state.ts';
import { retell } from './i18n/index.ts';
import { SAMPLE, SIZES, walkThrough } from '../../examples/lib/transformer.mjs';
import { HeadPicker, type HeadChoice } from './parts/head-picker.ts';

export type Walk = Awaited<ReturnType<typeof walkThrough>>;

/** Weights of this seed show something in the article's sample: neither flat nor all in one square. */
const FIRST_SEED = 3;

export const sentences = createSignal({ source: SAMPLE.source, target: SAMPLE.target });
/** Whose weights the steps are taken with: a trained model's, or drawn ones of the article's sizes. */
export type WalkWeights = 'trained' | 'drawn';
export const walkWeights = createSignal<WalkWeights>('trained');
export const seed = createSignal(FIRST_SEED);
export const walk = createSignal<Walk | null>(null);
/** Nothing to compute: one of the sentences has no word. */
export const walkEmpty = createSignal(false);
/** E, D and H of the walk that is shown. */
export const walkSizes = createSignal(SIZES);
/** One choice of head for all steps; where weights are shown, their average may stand in for it. */
export const walkHead = createSignal(0);
export const walkAverage = createSignal(false);
/** The switch that scales each head's weights by their own maximum. */
export const ownScale = createSignal(false);

/** One of several pickers that all show and change the shared choice. */
export function walkHeadPicker(withAverage: boolean): HTMLElement {
  const picker = new HeadPicker(walkSizes.get().heads, withAverage);
  walkSizes.watch(({ heads }) => picker.setHeads(heads));
  const pull = () =>
    picker.choice.set(withAverage && walkAverage.get() ? 'average' : walkHead.get());
  walkHead.watch(pull);
  walkAverage.watch(pull);
  picker.choice.watch((choice) => {
    if (choice !== 'average') walkHead.set(choice);
    walkAverage.set(choice === 'average');
  });
  return picker.element;
}

export function walkHeadChoice(): HeadChoice {
  return walkAverage.get() ? 'average' : walkHead.get();
}

/** Calls `show` now and whenever the results, the choice of head or the weights' scale change. */
export function watchWalk(show: () => void): void {
  walk.watch(show);
  walkHead.watch(show);
  walkAverage.watch(show);
  ownScale.watch(show);
}

export const walkRun = new LiveRun<Walk | null>(
  async (signal) => {
    const state = engineState.get();
    const { source, target } = sentences.get();
    if (state.kind !== 'ready' || source.trim() === '' || target.trim() === '') return null;
    if (walkWeights.get() === 'trained') {
      const model = await walkModel(state.engine);
      return walkTrained(state.engine, model, translationClass().task, source, signal);
    }
    return walkThrough(state.engine, { source, target, seed: seed.get(), signal });
  },
  (result) => {
    const { source, target } = sentences.get();
    walkEmpty.set(source.trim() === '' || target.trim() === '');
    if (!result) return;
    if (result.sizes.heads !== walkSizes.get().heads) {
      walkHead.set(0);
      walkSizes.set(result.sizes);
      retell();
    }
    walk.set(result);
    walkTimings.set(result.timings);
  },
);
