// Demo, section: the Transformer of document 001 learns to translate, and its heads are watched while it does.
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { createSignal } from '../signal.ts';
import { LiveRun } from '../live-run.ts';
import { runStatus } from '../parts/run-status.ts';
import { selectField, sentenceField } from '../parts/fields.ts';
import { stepSlider } from '../parts/step-slider.ts';
import { HeadGrid, causalHidden } from '../learning/head-grid.ts';
import { lessonPanel } from '../learning/panel.ts';
import { type TranslationTask, translationClass } from '../learning/translation-state.ts';
import { SAMPLE } from '../../../examples/lib/transformer.mjs';
import { wordsOf } from '../../../examples/lib/learning/words.mjs';
import { sourceWordsOf } from '../../../examples/lib/translation/corpus.mjs';
import { BEGIN, END } from '../../../examples/lib/learning/vocabulary.mjs';
import { sectionFrame } from './frame.ts';
import { lazyBody } from './lazy.ts';
import type { TransformerWeights } from 'headwise';

const KINDS = ['cross', 'encoder', 'decoder'] as const;
type Kind = (typeof KINDS)[number];

/** A pair and what all heads make of it. */
interface Looked {
  sourceWords: readonly string[];
  targetWords: readonly string[];
  weights: TransformerWeights;
}

type Answer = Awaited<ReturnType<TranslationTask['translate']>>;

/** What the model says to the fixed list of sentences. */
function shownList(): {
  element: HTMLElement;
  show: (rows: { source: string; target: string }[]) => void;
} {
  const body = h('tbody');
  const element = h(
    'table.pairs',
    { hidden: true },
    say(h('caption'), (s) => s.learning.translate.shown),
    body,
  );
  return {
    element,
    show(rows) {
      element.hidden = rows.length === 0;
      body.replaceChildren(
        ...rows.map(({ source, target }) =>
          h(
            'tr',
            {},
            h('th', { scope: 'row', lang: 'en' }, source),
            h('td', { lang: 'es' }, target),
          ),
        ),
      );
    },
  };
}

function body(): HTMLElement[] {
  const { task, room } = translationClass();
  const { encoderLayers = 0, numHeads } = task.lesson.config;
  const panel = lessonPanel(room, ({ training, heldOut }) =>
    t().learning.translate.measures(share(training), share(heldOut)),
  );
  const shown = shownList();
  room.measures.watch((measures) => shown.show(measures?.shown ?? []));

  // The sample's maps at every step, kept as the steps pass.
  const sample = { sourceWords: wordsOf(SAMPLE.source), targetWords: wordsOf(SAMPLE.target) };
  let history: TransformerWeights[] = [];
  const slider = stepSlider((s) => s.learning.translate.slider);
  const own = createSignal<Looked | null>(null);
  const kind = createSignal<Kind>('cross');
  /** What is shown: the sample at the slider's step, or the reader's sentence as the model is now. */
  const following = createSignal(false);
  room.onBegin = () => {
    history = [];
    slider.reset();
    following.set(true);
  };
  room.onStep = async (model) => {
    history.push(
      await model.attentionWeights(task.inputOf(sample.sourceWords, sample.targetWords)),
    );
    slider.grow(history.length);
  };

  const grid = new HeadGrid(encoderLayers, numHeads);
  const caption = h('p.aside', { role: 'status' });
  const draw = () => {
    const step = slider.value.get();
    const now: Looked | null =
      following.get() && step > 0 && step <= history.length
        ? { ...sample, weights: history[step - 1] }
        : own.get();
    grid.element.hidden = caption.hidden = !now;
    if (!now) return;
    const source = { labels: [...now.sourceWords, END], sequence: 'learn-source' };
    const target = { labels: [BEGIN, ...now.targetWords], sequence: 'learn-target' };
    const chosen = kind.get();
    const rows = chosen === 'encoder' ? source : target;
    const columns = chosen === 'decoder' ? target : source;
    grid.show(now.weights[chosen], {
      rows: { ...rows, role: 'query' },
      columns: { ...columns, role: 'key' },
      ...(chosen === 'decoder' ? { hidden: causalHidden(target.labels.length) } : {}),
    });
    caption.textContent = following.get()
      ? t().learning.translate.atStep(step)
      : t().learning.translate.now(task.sentenceOf(now.sourceWords));
  };

  const sentence = createSignal<string>(SAMPLE.source);
  const result = h('p.translation', { lang: 'es', 'aria-live': 'polite' });
  const unknown = h('p.kept', { role: 'status', hidden: true });
  let answer: Answer | null = null;
  const words = () => {
    const strange = answer?.unknown ?? [];
    unknown.hidden = strange.length === 0;
    unknown.textContent = t().learning.translate.unknown(strange);
  };
  const run = new LiveRun<{ answer: Answer; looked: Looked } | null>(
    async (signal) => {
      const text = sentence.get();
      const { model } = room;
      if (!model || sourceWordsOf(text).length === 0) return null;
      const made = await task.translate(model, text, signal);
      const weights = await model.attentionWeights(
        task.inputOf(made.sourceWords, made.targetWords),
      );
      return { answer: made, looked: { ...made, weights } };
    },
    (made) => {
      answer = made?.answer ?? null;
      result.textContent = answer ? answer.text || '…' : '';
      own.set(made?.looked ?? null);
      words();
    },
  );
  room.version.changed(() => void run.now());
  const field = sentenceField(
    (s) => s.learning.translate.ask,
    sentence.get(),
    (value) => {
      sentence.set(value);
      following.set(false);
      run.soon();
    },
  );
  field.input.lang = 'en';
  slider.value.changed(() => draw());
  slider.moved(() => following.set(true));
  own.watch(draw);
  kind.watch(draw);
  following.watch(draw);
  language.watch(() => {
    words();
    draw();
  });
  void room.takeStored();

  return [
    panel,
    h(
      'div.lesson-columns',
      {},
      h('div', {}, field.element, result, unknown, runStatus(run)),
      shown.element,
    ),
    h(
      'div.map-choice',
      {},
      selectField(
        (s) => s.learning.translate.kind,
        KINDS,
        (s, choice) => s.kinds[choice].title,
        kind.get(),
        (choice) => kind.set(choice),
      ),
      slider.element,
    ),
    caption,
    grid.element,
  ];
}

const share = (value: number) => `${(100 * value).toFixed(1)} %`;

export function translateSection(): HTMLElement {
  const section = sectionFrame(
    'translate',
    (s) => s.learning.translate.title,
    (s) => s.learning.translate.source,
    (s) => s.learning.translate.intro,
    (s) => s.learning.translate.data,
  );
  section.append(lazyBody(body));
  return section;
}
