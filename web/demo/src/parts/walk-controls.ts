// Demo, part: the sample's two sentences, and the draw of other weights.
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { sentenceOf } from '../../../examples/lib/learning/words.mjs';
import { SAMPLE, SIZES } from '../../../examples/lib/transformer.mjs';
import {
  type WalkWeights,
  seed,
  sentences,
  walk,
  walkEmpty,
  walkRun,
  walkWeights,
} from '../walk-state.ts';
import { button, selectField, sentenceField } from './fields.ts';
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
  const redraw = button(
    (s) => s.walk.redraw,
    () => {
      seed.set(seed.get() + 1);
      void walkRun.now();
    },
    'quiet',
  );
  const weights = selectField<WalkWeights>(
    (s) => s.walk.weightsLabel,
    ['trained', 'drawn'],
    (s, choice) => s.walk.weightsChoices[choice],
    walkWeights.get(),
    (choice) => {
      walkWeights.set(choice);
      void walkRun.now();
    },
  );
  weights.classList.add('walk-weights');
  const seedText = h('span.seed');
  const words = () => (seedText.textContent = t().walk.seed(seed.get()));
  language.watch(words);
  seed.watch(words);
  // A trained model writes its target itself; drawn weights take any.
  const translated = () => {
    const trained = walkWeights.get() === 'trained';
    redraw.hidden = seedText.hidden = trained;
    target.input.readOnly = trained;
    if (trained) {
      const now = walk.get();
      if (now && now.sizes !== SIZES)
        target.input.value = sentenceOf(now.target.tokens.slice(1, now.target.valid));
    } else target.input.value = sentences.get().target;
  };
  walk.watch(translated);
  walkWeights.watch(translated);
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
    weights,
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
      redraw,
      seedText,
      runStatus(walkRun),
    ),
    kept,
    empty,
  );
}
