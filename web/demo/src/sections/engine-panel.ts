// Demo, section: engine.info, engine.memory(), the time of each step, and a heavy run beside which the page stays alive.
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { engineState, walkTimings, withEngine } from '../engine-host.ts';
import { createSignal } from '../signal.ts';
import { sectionFrame } from './frame.ts';
import { stressArticle } from './stress.ts';

function bytesText(bytes: number): string {
  return `${(bytes / 1048576).toLocaleString(language.get(), { maximumFractionDigits: 1 })} MB`;
}

type Memory = { heapBytes: number; inUseBytes: number; peakBytes: number; gpuBytes: number };

function facts(): HTMLElement {
  const list = h('dl.facts');
  const memory = createSignal<Memory | null>(null);
  const render = () => {
    const s = t().engine;
    const state = engineState.get();
    if (state.kind !== 'ready') {
      list.replaceChildren();
      return;
    }
    const { info } = state.engine;
    const entry = (name: string, value: string, reason?: string) => [
      h('dt', {}, name),
      h('dd', {}, value, reason ? h('span.reason', {}, reason) : null),
    ];
    const now = memory.get();
    list.replaceChildren(
      ...entry(s.version, info.version),
      ...entry(s.backend, info.backend),
      ...entry(s.variant, info.variant),
      ...entry(s.threads, String(info.threads), info.threadsReason),
      ...entry(s.isolated, self.crossOriginIsolated ? s.yes : s.no),
      ...entry(s.cores, String(navigator.hardwareConcurrency)),
      ...entry(s.gpu, info.gpu ? s.yes : s.none, info.gpuReason),
      ...(now
        ? [...entry(s.heap, bytesText(now.heapBytes)), ...entry(s.inUse, bytesText(now.inUseBytes)), ...entry(s.peak, bytesText(now.peakBytes))]
        : []),
    );
  };
  const measure = async () => {
    const state = engineState.get();
    // An engine that is being disposed has no memory to tell of.
    if (state.kind === 'ready') memory.set(await state.engine.memory().catch(() => null));
  };
  engineState.watch(render);
  memory.watch(render);
  language.watch(render);
  withEngine(() => void measure());
  walkTimings.watch(() => void measure());
  return list;
}

function times(): HTMLElement {
  const body = h('tbody');
  const table = h(
    'table.times',
    {},
    h('thead', {}, h('tr', {}, say(h('th', { scope: 'col' }), (s) => s.engine.step), say(h('th', { scope: 'col' }), (s) => s.engine.time), h('td'))),
    body,
  );
  const render = () => {
    const s = t().engine;
    const timings = walkTimings.get();
    const longest = Math.max(...timings.map((timing) => timing.milliseconds), 0.001);
    body.replaceChildren(
      ...timings.map(({ name, milliseconds }) => {
        const [kind, step] = name.split('.');
        const bar = h('span.time-bar', { 'aria-hidden': 'true' });
        bar.style.width = `${(milliseconds / longest) * 100}%`;
        return h(
          'tr',
          {},
          h('th', { scope: 'row' }, `${s.kinds[kind]} · ${s.steps[step]}`),
          h('td', {}, milliseconds.toFixed(2)),
          h('td.time-cell', {}, bar),
        );
      }),
    );
  };
  walkTimings.watch(render);
  language.watch(render);
  return table;
}

export function engineSection(): HTMLElement {
  const section = sectionFrame('engine', (s) => s.engine.title, null, (s) => s.engine.intro);
  section.append(
    h(
      'div.engine-grid',
      {},
      h('div', {}, facts(), stressArticle()),
      h('article.times-article', {}, say(h('h3'), (s) => s.engine.timesTitle), say(h('p'), (s) => s.engine.timesNote), times()),
    ),
  );
  return section;
}
