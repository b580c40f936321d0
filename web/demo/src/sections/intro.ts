// Demo, section: what heads do. A sentence, four heads set by hand, four maps.
import { h } from '../dom.ts';
import { label, language, say, t } from '../i18n/index.ts';
import { engineState, withEngine } from '../engine-host.ts';
import { createSignal } from '../signal.ts';
import { LiveRun } from '../live-run.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { createLegend } from '../heatmap/legend.ts';
import { showWeights } from '../parts/weights-view.ts';
import { runStatus } from '../parts/run-status.ts';
import { sentenceField } from '../parts/fields.ts';
import { HAND_SET_HEADS, lookWithHandSetHeads } from '../../../examples/lib/heads.mjs';

/** The sentence at the top of the page; the variants read it too. */
export const introSentence = createSignal(t().hero.sample);

export function introSection(): HTMLElement {
  const maps = HAND_SET_HEADS.map(
    (name) => new HeatMap({ title: () => t().hero.heads[name], plain: true }),
  );
  const legend = createLegend();
  legend.show({ kind: 'share', max: 1 }, false);
  const kept = h('p.kept', { role: 'status', hidden: true });
  const empty = say(h('p.map-message', { hidden: true, role: 'status' }), (s) => s.hero.empty);
  const grid = h('div.hero-maps', {}, ...maps.map((map) => map.element));

  type Look = Awaited<ReturnType<typeof lookWithHandSetHeads>>;
  let last: Look | null = null;
  const words = () => {
    const cut = last !== null && last.total > last.tokens.length;
    kept.hidden = !cut;
    kept.textContent = cut && last ? t().status.kept(last.tokens.length, last.total) : '';
  };
  const run = new LiveRun<Look | null>(
    async (signal) => {
      const state = engineState.get();
      return state.kind === 'ready'
        ? lookWithHandSetHeads(state.engine, introSentence.get(), { signal })
        : null;
    },
    (result) => {
      if (!result) return;
      last = result;
      const { tokens, weights } = result;
      grid.hidden = weights === null;
      empty.hidden = weights !== null;
      words();
      if (!weights) return;
      maps.forEach((map, head) =>
        showWeights(
          map,
          weights,
          head,
          {
            rows: { labels: tokens, role: 'query', sequence: 'intro' },
            columns: { labels: tokens, role: 'key', sequence: 'intro' },
          },
          false,
        ),
      );
    },
  );
  language.watch(words);
  withEngine(() => run.now());

  const field = sentenceField(
    (s) => s.hero.ask,
    introSentence.get(),
    (value) => introSentence.set(value),
  );
  introSentence.changed(() => run.soon());
  // The sample follows the language as long as the reader has not written anything.
  let sample = t().hero.sample;
  language.watch(() => {
    const next = t().hero.sample;
    if (introSentence.get() === sample && next !== sample) {
      field.input.value = next;
      introSentence.set(next);
    }
    sample = next;
  });

  const section = h(
    'section.hero',
    { id: 'heads' },
    say(h('h1'), (s) => s.hero.title),
    say(h('p.lede'), (s) => s.hero.lede),
    h(
      'div.hero-live',
      {},
      field.element,
      runStatus(run),
      kept,
      grid,
      empty,
      h('div.hero-foot', {}, legend.element),
    ),
    h(
      'div.prose',
      {},
      say(h('p'), (s) => s.hero.how),
      say(h('p.aside'), (s) => s.hero.note),
    ),
  );
  label(section, 'aria-label', (s) => s.hero.title);
  return section;
}
