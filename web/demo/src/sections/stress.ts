// Demo, section: a run that takes long, with progress and a stop. It counts the page's own pauses while the engine works.
// It has an engine of its own: calls of one engine go one after the other, and the page's other numbers shall not wait.
import { createEngine, type Engine } from 'headwise';
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { engineState, reasonOf } from '../engine-host.ts';
import { button } from '../parts/fields.ts';
import { uniformGenerator } from '../../../examples/lib/random.mjs';

const ROUNDS = 24;
const SHAPE = [1, 8, 2048, 64] as const;
/** Multiplications and additions of the two products of one attention. */
const OPERATIONS = 4 * SHAPE[1] * SHAPE[2] * SHAPE[2] * SHAPE[3];
/** So many numbers are drawn before the page gets a turn. */
const SLICE = 1 << 17;

const pause = () => new Promise((resolve) => setTimeout(resolve));

async function drawNumbers(seed: number): Promise<{ data: Float32Array; shape: number[] }> {
  const size = SHAPE.reduce<number>((product, n) => product * n, 1);
  const data = new Float32Array(size);
  const uniform = uniformGenerator(seed);
  for (let start = 0; start < size; start += SLICE) {
    const end = Math.min(size, start + SLICE);
    for (let i = start; i < end; i++) data[i] = 2 * uniform() - 1;
    await pause();
  }
  return { data, shape: [...SHAPE] };
}

/** Longest time between two frames, which is how long the page stood still; a hidden tab draws none and does not count. */
function watchFrames(): () => number {
  let longest = 0;
  let last = performance.now();
  let running = true;
  const frame = (now: number) => {
    if (document.visibilityState === 'visible') longest = Math.max(longest, now - last);
    last = now;
    if (running) requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => {
    last = now;
    requestAnimationFrame(frame);
  });
  return () => {
    running = false;
    return longest;
  };
}

type Report =
  | { kind: 'none' }
  | { kind: 'running'; done: number }
  | { kind: 'finished'; seconds: number; longest: number }
  | { kind: 'stopped'; done: number; after: number; longest: number }
  | { kind: 'failed'; reason: string };

export function stressArticle(): HTMLElement {
  let report: Report = { kind: 'none' };
  let controller: AbortController | null = null;
  let stopClick = 0;
  const bar = h('progress', { max: ROUNDS, value: 0 });
  const text = h('p.stress-report', { role: 'status' });
  const pulse = h('span.pulse', { 'aria-hidden': 'true' });
  const words = () => {
    const s = t().engine;
    bar.setAttribute('aria-label', s.stressTitle);
    if (report.kind === 'none') text.textContent = '';
    else if (report.kind === 'running') text.textContent = s.progress(report.done, ROUNDS);
    else if (report.kind === 'failed') text.textContent = t().status.failed(report.reason);
    else {
      const pauses = s.pause(Math.round(report.longest));
      text.textContent =
        report.kind === 'finished'
          ? `${s.finished(report.seconds.toFixed(1), ((ROUNDS * OPERATIONS) / report.seconds / 1e9).toFixed(0))} ${pauses}`
          : `${s.stopped(report.done, Math.round(report.after))} ${pauses}`;
    }
  };
  const set = (next: Report) => {
    report = next;
    const running = next.kind === 'running';
    start.disabled = running;
    stop.hidden = !running;
    bar.hidden = pulse.hidden = !running;
    if (running) bar.value = next.done;
    words();
  };
  const run = async () => {
    controller = new AbortController();
    const { signal } = controller;
    set({ kind: 'running', done: 0 });
    const longest = watchFrames();
    let engine: Engine | null = null;
    let done = 0;
    try {
      const inputs = [await drawNumbers(1), await drawNumbers(2), await drawNumbers(3)];
      engine = await createEngine({ signal });
      const begin = performance.now();
      for (; done < ROUNDS; done++) {
        signal.throwIfAborted();
        await engine.attention(inputs[0], inputs[1], inputs[2], { signal });
        if (done + 1 < ROUNDS) set({ kind: 'running', done: done + 1 });
      }
      set({ kind: 'finished', seconds: (performance.now() - begin) / 1000, longest: longest() });
    } catch (error) {
      if (signal.aborted)
        set({ kind: 'stopped', done, after: performance.now() - stopClick, longest: longest() });
      else {
        longest();
        set({ kind: 'failed', reason: reasonOf(error) });
      }
    } finally {
      engine?.dispose();
    }
  };
  const start = button(
    (s) => s.engine.start,
    () => void run(),
    'primary',
  );
  const stop = button(
    (s) => s.status.cancel,
    () => {
      stopClick = performance.now();
      controller?.abort();
    },
  );
  set({ kind: 'none' });
  language.watch(words);
  engineState.watch((state) => {
    start.disabled = state.kind !== 'ready';
  });
  return h(
    'article.stress',
    {},
    say(h('h3'), (s) => s.engine.stressTitle),
    say(h('p'), (s) => s.engine.stressText),
    h('div.buttons', {}, start, stop, pulse),
    bar,
    text,
  );
}
