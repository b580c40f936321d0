// Demo, section: a decoder learns to write, character by character, and what each character looked at.
import { h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { createSignal } from '../signal.ts';
import { Latest } from '../latest.ts';
import { reasonOf } from '../engine-host.ts';
import { button, selectField, sentenceField } from '../parts/fields.ts';
import { HeadPicker } from '../parts/head-picker.ts';
import { rangeField } from '../parts/range-field.ts';
import { Classroom } from '../learning/classroom.ts';
import { lessonPanel } from '../learning/panel.ts';
import { WrittenText } from '../learning/written-text.ts';
import { headOf, meanOfHeads, type Numbers } from '../../../examples/lib/matrix.mjs';
import { textLesson } from '../../../examples/lib/text/lesson.mjs';
import stored from '../../models/text.safetensors?url';
import { sectionFrame } from './frame.ts';
import { lazyBody } from './lazy.ts';

const LENGTH = 300;
const PROMPT = 'Once there was a';

function body(): HTMLElement[] {
  const task = textLesson();
  const room = new Classroom(task.lesson, stored);
  const { decoderLayers = 0, numHeads } = task.lesson.config;
  const panel = lessonPanel(
    room,
    ({ perplexity, rival }) =>
      t().learning.write.measures(
        perplexity.toFixed(2),
        rival.toFixed(2),
        (perplexity / rival).toFixed(2),
      ),
    Math.log(task.rival),
  );

  const prompt = createSignal(PROMPT);
  const temperature = createSignal(0.5);
  const layers = Array.from({ length: decoderLayers }, (_, i) => String(i));
  const layer = createSignal(layers.at(-1) ?? '0');
  const heads = new HeadPicker(numHeads);
  heads.choice.set('average');
  const status = h('p.kept', { role: 'status' });
  let seed = 1;

  /** Weights behind the letter that is pointed at; asked for when the letter changes. */
  let looked: { weights: Numbers[]; first: number } | null = null;
  const looking = new Latest();
  const shade = () => {
    if (!looked) return;
    const weights = looked.weights[Number(layer.get())];
    const choice = heads.choice.get();
    const matrix = choice === 'average' ? meanOfHeads(weights) : headOf(weights, choice);
    const length = weights.shape[3];
    // The last row is the position that said the letter. Its first column may be the begin token, which is no letter.
    const row = matrix.subarray((length - 1) * length);
    written.shade(Math.max(0, looked.first), looked.first < 0 ? row.subarray(1) : row);
  };
  const written = new WrittenText((index) => {
    looked = null;
    const { model } = room;
    if (index < 0 || !model) return;
    const before = [...written.text].slice(0, index).join('');
    void looking
      .run(async () => {
        const { input, labels } = task.inputOf(before);
        return { weights: (await model.attentionWeights(input)).decoder, length: labels.length };
      })
      .then((outcome) => {
        if (outcome.kind !== 'done') return;
        looked = { weights: outcome.value.weights, first: index - outcome.value.length };
        shade();
      });
  });
  layer.changed(shade);
  heads.choice.changed(shade);

  const writing = new Latest();
  const write = async () => {
    const { model } = room;
    if (!model) return;
    written.begin(prompt.get());
    stop.hidden = false;
    status.textContent = '';
    const outcome = await writing.run(async (signal) => {
      const options = {
        length: LENGTH,
        temperature: temperature.get(),
        seed: seed++ * 1000,
        signal,
      };
      for await (const letter of task.write(model, prompt.get(), options)) {
        if (signal.aborted) return;
        written.add(letter);
      }
    });
    if (outcome.kind === 'stale') return;
    stop.hidden = true;
    if (outcome.kind === 'failed') status.textContent = t().status.failed(reasonOf(outcome.error));
  };
  const go = button(
    (s) => s.learning.write.go,
    () => void write(),
    'primary',
  );
  const stop = button(
    (s) => s.learning.stop,
    () => writing.cancel(),
  );
  stop.hidden = true;
  go.disabled = true;
  room.version.changed((version) => {
    go.disabled = false;
    // Something to read as soon as there is a model; later only when asked for.
    if (version === 1) void write();
  });
  const field = sentenceField(
    (s) => s.learning.write.prompt,
    PROMPT,
    (value) => prompt.set(value),
  );
  field.input.lang = 'en';
  written.element.lang = 'en';
  const unknown = h('p.kept', { role: 'status', hidden: true });
  const words = () => {
    const strange = task.vocabulary.missing([...prompt.get()]);
    unknown.hidden = strange.length === 0;
    unknown.textContent = t().learning.write.unknown(strange);
  };
  prompt.watch(words);
  language.watch(words);
  void room.takeStored();

  return [
    panel,
    h(
      'div.lesson-columns',
      {},
      h(
        'div',
        {},
        field.element,
        unknown,
        rangeField(
          (s) => s.learning.write.temperature,
          { min: 0, max: 1.5, step: 0.1, value: temperature.get() },
          (value) => temperature.set(value),
        ),
        h('div.buttons', {}, go, stop),
        status,
      ),
      h(
        'div',
        {},
        h(
          'div.map-choice',
          {},
          selectField(
            (s) => s.learning.layerLabel,
            layers,
            (s, choice) => s.learning.layer(Number(choice) + 1),
            layer.get(),
            (choice) => layer.set(choice),
          ),
          heads.element,
        ),
        written.element,
        say(h('p.aside'), (s) => s.learning.write.how),
      ),
    ),
  ];
}

export function writeSection(): HTMLElement {
  const section = sectionFrame(
    'write',
    (s) => s.learning.write.title,
    (s) => s.learning.write.source,
    (s) => s.learning.write.intro,
    (s) => s.learning.write.data,
  );
  section.append(lazyBody(body));
  return section;
}
