// Demo, part: the sample's two sentences, and the draw of other weights.
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { SAMPLE } from '../../../examples/lib/transformer.mjs';
import { seed, sentences, walk, walkEmpty, walkRun } from '../walk-state.ts';
import { button, sentenceField } from './fields.ts';
import { runStatus } from './run-status.ts';

export function walkControls(): HTMLElement {
  const change = (part: { source?: string; target?: string }) => {
    sentences.set({ ...sentences.get(), ...part });
    walkRun.soon();
  };
  const source = sentenceField(
    (s) => s.walk.sourceLabel,
    SAMPLE.source,
    (value) => change({ source: value }),
  );
  const target = sentenceField(
    (s) => s.walk.targetLabel,
    SAMPLE.target,
    (value) => change({ target: value }),
  );
  const empty = say(h('p.kept', { role: 'status', hidden: true }), (s) => s.walk.empty);
  walkEmpty.watch((isEmpty) => {
    empty.hidden = !isEmpty;
  });
  const seedText = h('span.seed');
  const words = () => (seedText.textContent = t().walk.seed(seed.get()));
  language.watch(words);
  seed.watch(words);
  const kept = h('p.kept', { role: 'status', hidden: true });
  const keptWords = () => {
    const now = walk.get();
    const cut = [now?.source, now?.target].filter(
      (side) => side !== undefined && side.total > side.valid,
    );
    kept.hidden = cut.length === 0;
    kept.textContent = cut
      .map((side) => (side ? t().status.kept(side.valid, side.total) : ''))
      .join(' ');
  };
  walk.watch(keptWords);
  language.watch(keptWords);
  return h(
    'div.controls',
    {},
    h('div.fields', {}, source.element, target.element),
    h(
      'div.buttons',
      {},
      button(
        (s) => s.walk.reset,
        () => {
          source.input.value = SAMPLE.source;
          target.input.value = SAMPLE.target;
          change({ ...SAMPLE });
        },
        'quiet',
      ),
      button(
        (s) => s.walk.redraw,
        () => {
          seed.set(seed.get() + 1);
          void walkRun.now();
        },
        'quiet',
      ),
      seedText,
      runStatus(walkRun),
    ),
    kept,
    empty,
  );
}
