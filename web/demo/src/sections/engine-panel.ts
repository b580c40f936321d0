// Demo, section: engine.info, engine.memory(), the time of each step, and a heavy run beside which the page stays alive.
import type { EngineInfo, LastCall } from 'headwise';
import { freshId, h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import {
  BACKENDS,
  engineState,
  reasonWords,
  switchBackend,
  walkTimings,
  withEngine,
  type Backend,
} from '../engine-host.ts';
import { createSignal } from '../signal.ts';
import { crossoverArticle } from './crossover.ts';
import { sectionFrame } from './frame.ts';
import { stressArticle } from './stress.ts';

function bytesText(bytes: number): string {
  return `${(bytes / 1048576).toLocaleString(language.get(), { maximumFractionDigits: 1 })} MB`;
}

/** Why that side, unless it is why there is no GPU, which stands above. */
function callReason(
  { reason, reasonCode, estimate }: LastCall,
  { gpuReasonCode }: EngineInfo,
): string {
  if (reasonCode === gpuReasonCode) return '';
  if (!estimate) return reasonWords(reasonCode, reason);
  const digits = (ms: number) => ms.toLocaleString(language.get(), { maximumSignificantDigits: 2 });
  return t().engine.estimate(digits(estimate.gpuMs), digits(estimate.cpuMs));
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
    const { info, lastCall } = state.engine;
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
      ...entry(
        s.gpu,
        info.gpu ? info.gpu.description : s.none,
        info.gpuReason && reasonWords(info.gpuReasonCode, info.gpuReason),
      ),
      ...(lastCall ? entry(s.lastCall, lastCall.side, callReason(lastCall, info)) : []),
      ...(now
        ? [
            ...entry(s.heap, bytesText(now.heapBytes)),
            ...entry(s.inUse, bytesText(now.inUseBytes)),
            ...entry(s.peak, bytesText(now.peakBytes)),
            ...(info.gpu ? entry(s.gpuMemory, bytesText(now.gpuBytes)) : []),
          ]
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
  withEngine((engine) => {
    // Nobody waits for the GPU, and then it is there.
    void engine.gpuReady().then(render);
    return measure();
  });
  walkTimings.watch(() => void measure());
  return list;
}

/** Which side computes: the reader's choice. */
function backendSwitch(): HTMLElement {
  const id = freshId('backend');
  const select = h('select', { id });
  const reason = h('p.reason', { role: 'status' });
  const options = BACKENDS.map((backend) => h('option', { value: backend }));
  select.append(...options);
  language.watch(() => {
    for (const option of options) option.textContent = t().engine.choices[option.value];
  });
  let chosen: Backend = 'auto';
  select.addEventListener('change', () => {
    select.disabled = true;
    reason.textContent = '';
    void switchBackend(select.value as Backend).then((why) => {
      if (why === undefined) chosen = select.value as Backend;
      else reason.textContent = t().engine.cannotChoose(why);
      select.value = chosen;
      select.disabled = false;
    });
  });
  return h(
    'div.backend-switch',
    {},
    say(h('label', { for: id }), (s) => s.engine.choose),
    select,
    reason,
  );
}

/** The columns of the table: a sentence's own steps stand above its self-attention's. */
const COLUMNS = [
  { kind: 'encoder', side: 'source' },
  { kind: 'decoder', side: 'target' },
  { kind: 'cross', side: null },
] as const;

function times(): HTMLElement {
  const head = h('tr');
  const body = h('tbody');
  const table = h('table.times', {}, h('thead', {}, head), body);
  const render = () => {
    const s = t().engine;
    const took = new Map(walkTimings.get().map(({ name, milliseconds }) => [name, milliseconds]));
    const longest = Math.max(...took.values(), 0.001);
    head.replaceChildren(
      h('th', { scope: 'col' }, s.step),
      ...COLUMNS.map(({ kind }) => h('th', { scope: 'col' }, s.kinds[kind])),
    );
    body.replaceChildren(
      ...Object.entries(s.steps).map(([step, name]) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, name),
          ...COLUMNS.map(({ kind, side }) => {
            const milliseconds =
              took.get(`${kind}.${step}`) ?? (side ? took.get(`${side}.${step}`) : undefined);
            if (milliseconds === undefined) return h('td');
            const bar = h('span.time-bar', { 'aria-hidden': 'true' });
            bar.style.width = `${(milliseconds / longest) * 100}%`;
            return h('td', {}, milliseconds.toFixed(2), bar);
          }),
        ),
      ),
    );
  };
  walkTimings.watch(render);
  language.watch(render);
  return table;
}

export function engineSection(): HTMLElement {
  const section = sectionFrame(
    'engine',
    (s) => s.engine.title,
    null,
    (s) => s.engine.intro,
  );
  section.append(
    h(
      'div.engine-grid',
      {},
      h('div', {}, facts(), backendSwitch(), stressArticle()),
      h(
        'article.times-article',
        {},
        say(h('h3'), (s) => s.engine.timesTitle),
        say(h('p'), (s) => s.engine.timesNote),
        times(),
        crossoverArticle(),
      ),
    ),
  );
  return section;
}
