// Demo, learning: what stands at the head of each lesson: the buttons, where the training stands, the loss, the measures.
import { h, rich } from '../dom.ts';
import { language, t } from '../i18n/index.ts';
import { button } from '../parts/fields.ts';
import type { Classroom } from './classroom.ts';
import { LossCurve } from './loss-curve.ts';

/** @param measureWords says what was measured, in the markup of the translations. */
export function lessonPanel<M>(
  room: Classroom<M>,
  measureWords: (measures: M) => string,
  level: number | null = null,
): HTMLElement {
  const curve = new LossCurve(room.losses, level);
  const bar = h('progress', { hidden: true });
  const status = h('p.lesson-status', { role: 'status' });
  const measured = h('p.verdict.lesson-measures');
  const train = button(
    (s) => s.learning.begin,
    () => void room.begin(),
    'primary',
  );
  const pause = button(
    (s) => s.learning.pause,
    () => room.pause(),
  );
  const resume = button(
    (s) => s.learning.resume,
    () => void room.resume(),
    'primary',
  );
  const stop = button(
    (s) => s.learning.stop,
    () => room.stop(),
  );
  const stored = button(
    (s) => s.learning.stored,
    () => void room.takeStored(),
    'quiet',
  );
  const render = () => {
    const s = t().learning;
    const state = room.state.get();
    const { kind } = state;
    const training = kind === 'running' || kind === 'paused';
    train.hidden = training || kind === 'loading' || kind === 'stopped';
    pause.hidden = kind !== 'running';
    resume.hidden = !room.resumable;
    stop.hidden = !training;
    stored.hidden = training || kind === 'loading' || kind === 'stored';
    bar.hidden = !training;
    curve.element.hidden = room.losses.length === 0 && !training;
    status.textContent = kind === 'failed' ? t().status.failed(state.reason) : s.states[kind];
  };
  const follow = () => {
    const now = room.progress.get();
    if (!now) return;
    bar.max = now.steps;
    bar.value = now.step;
    bar.setAttribute('aria-label', t().learning.progress);
    if (room.state.get().kind === 'running')
      status.textContent = t().learning.at(now.step, now.steps, now.epoch, now.seconds.toFixed(0));
    curve.follow();
  };
  const words = () => {
    const measures = room.measures.get();
    measured.replaceChildren(...(measures ? rich(measureWords(measures)) : []));
  };
  room.state.watch(render);
  room.progress.watch(follow);
  room.measures.watch(words);
  language.watch(() => {
    render();
    follow();
    words();
  });
  // A live region that speaks at every step would never be silent.
  room.state.watch(({ kind }) => {
    status.setAttribute('aria-live', kind === 'running' ? 'off' : 'polite');
  });
  return h(
    'div.controls.lesson',
    {},
    h('div.buttons', {}, train, pause, resume, stop, stored),
    status,
    bar,
    measured,
    curve.element,
  );
}
