// Demo, part: one line that says what a live run is doing, with the button that stops it.
import { h } from '../dom.ts';
import { language, t } from '../i18n/index.ts';
import { engineState } from '../engine-host.ts';
import type { LiveRun } from '../live-run.ts';
import { button } from './fields.ts';

/** A run shorter than this shows no sign: a line that flickers says nothing. */
const PATIENCE_MS = 200;

export function runStatus<T>(run: LiveRun<T>): HTMLElement {
  const text = h('span', { role: 'status' });
  const cancel = button(
    (s) => s.status.cancel,
    () => run.cancel(),
    'quiet',
  );
  const element = h('div.run-status', {}, text, cancel);
  let timer = 0;
  const render = () => {
    const s = t();
    const state = run.state.get();
    const engine = engineState.get();
    element.dataset.state = state.kind;
    window.clearTimeout(timer);
    const show = (words: string, stoppable: boolean) => {
      text.textContent = words;
      cancel.hidden = !stoppable;
    };
    if (engine.kind === 'starting') show(s.status.starting, false);
    else if (engine.kind === 'failed') show(s.status.failed(engine.reason), false);
    else if (state.kind === 'running')
      timer = window.setTimeout(() => show(s.status.running, true), PATIENCE_MS);
    else if (state.kind === 'cancelled') show(s.status.cancelled, false);
    else if (state.kind === 'failed') show(s.status.failed(state.reason), false);
    else show('', false);
  };
  run.state.watch(render);
  engineState.watch(render);
  language.watch(render);
  return element;
}
