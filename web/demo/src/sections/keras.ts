// Demo, section: the Keras layers of documents 000 and 002 and tf.keras.layers.MultiHeadAttention, computed now, beside what
// TensorFlow gave. The stored numbers are the tests' own fixtures, fetched when the section comes near.
import documentsUrl from '../../../../tests/fixtures/documents.json?url';
import kerasUrl from '../../../../tests/fixtures/keras.json?url';
import type { Engine } from 'headwise';
import { h, rich } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { reasonOf, withEngine } from '../engine-host.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { type Axis, commonMaximum } from '../heatmap/data.ts';
import { HeadPicker } from '../parts/head-picker.ts';
import { selectField } from '../parts/fields.ts';
import { showWeights } from '../parts/weights-view.ts';
import { Latest } from '../latest.ts';
import type { Numbers } from '../../../examples/lib/matrix.mjs';
import {
  caseNamed,
  runDocument000,
  runDocument002,
  runKerasLayer,
  type KerasResult,
  type StoredCase,
} from '../../../examples/lib/keras.mjs';
import { codeBlock, sectionFrame, shapeText } from './frame.ts';

type Fixture = { versions: Record<string, string>; cases: StoredCase[] };

/** Tolerance of the comparison: what the articles' layers must be met to. */
const WANTED = 1e-5;

const LAYERS = [
  {
    id: 'document000',
    url: documentsUrl,
    cases: ['000_self', '000_cross', '000_one_head'],
    run: runDocument000,
    code: 'const layer = engine.multiHeadAttention({\n  embedDim: d_model, numHeads: num_heads })\nawait layer.loadKeras(weights)\n// Keras: layer(v, k, q)\nconst { output } =\n  await layer.forward(q, k, v)',
  },
  {
    id: 'document002',
    url: documentsUrl,
    cases: [
      '002_look_ahead',
      '002_padding',
      '002_look_ahead_and_padding',
      '002_no_mask',
      '002_fully_hidden_row',
    ],
    run: runDocument002,
    code: '// Keras: output, weights =\n//   layer(q, k, v, mask)\nconst bias = mask * -1e9\nconst { output, weights } =\n  await layer.forward(q, k, v, {\n    bias, returnWeights: true })',
  },
  {
    id: 'layer',
    url: kerasUrl,
    cases: ['mha_self', 'mha_value_dim_differs', 'mha_cross_all_sizes_differ', 'mha_causal'],
    run: runKerasLayer,
    code: '// Keras: output, scores =\n//   layer(query, value, key,\n//     return_attention_scores=True)\nconst { output, weights } =\n  await layer.forward(\n    query, key, value,\n    { returnWeights: true })',
  },
] as const;

const fetched = new Map<string, Promise<Fixture>>();

function fixtureAt(url: string): Promise<Fixture> {
  let promise = fetched.get(url);
  if (!promise) {
    promise = fetch(url).then((response) => {
      if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
      return response.json() as Promise<Fixture>;
    });
    fetched.set(url, promise);
  }
  return promise;
}

/** Sample 0 of a tensor [B,L,E]. */
function firstSample(tensor: Numbers): Float32Array {
  return tensor.data.subarray(0, tensor.shape[1] * tensor.shape[2]);
}

function numbered(
  count: number,
  text: (n: number) => string,
  role: Axis['role'],
  sequence?: string,
): Axis {
  return {
    labels: Array.from({ length: count }, (_, i) => text(i)),
    role,
    ...(sequence ? { sequence } : {}),
  };
}

function layerArticle(layer: (typeof LAYERS)[number], versions: HTMLElement): HTMLElement {
  let shape = '';
  const ours = new HeatMap({ title: () => t().keras.ours, note: () => shape });
  const theirs = new HeatMap({ title: () => t().keras.theirs, note: () => shape });
  const weights = new HeatMap({ title: () => t().keras.weights });
  const heads = new HeadPicker(1);
  const verdict = h('p.verdict', { role: 'status' });
  let result: KerasResult | null = null;
  let failure: string | null = null;
  let engine: Engine | null = null;
  let name: string = layer.cases[0];
  const latest = new Latest();

  const words = () => {
    const s = t();
    if (failure !== null) verdict.textContent = s.status.failed(failure);
    else if (result) {
      const good = result.difference <= WANTED;
      verdict.dataset.good = String(good);
      verdict.replaceChildren(...rich(s.keras.verdict(result.difference.toExponential(1), good)));
    }
  };
  const show = () => {
    words();
    if (!result) return;
    const s = t().keras;
    const { output, expected } = result;
    const [, rows, columns] = output.shape;
    shape = shapeText(output.shape);
    const scale = {
      kind: 'signed' as const,
      max: commonMaximum(firstSample(output), firstSample(expected)),
    };
    const axes = {
      rows: numbered(rows, s.token, 'token', `${layer.id}-rows`),
      columns: numbered(columns, (n) => t().map.dimension(n + 1), 'column', `${layer.id}-columns`),
    };
    ours.show({ values: firstSample(output), ...axes, scale });
    theirs.show({ values: firstSample(expected), ...axes, scale });
    weights.element.hidden = heads.element.hidden = result.weights === null;
    if (!result.weights) return;
    const [, count, L, S] = result.weights.shape;
    heads.setHeads(count);
    showWeights(
      weights,
      result.weights,
      heads.choice.get(),
      { rows: numbered(L, s.query, 'query'), columns: numbered(S, s.key, 'key') },
      false,
    );
  };
  const run = async () => {
    if (!engine) return;
    const running = engine;
    const outcome = await latest.run(async () => {
      const fixture = await fixtureAt(layer.url);
      versions.dataset.versions = `TensorFlow ${fixture.versions.tensorflow}, Keras ${fixture.versions.keras}`;
      return layer.run(running, caseNamed(fixture, name));
    });
    if (outcome.kind === 'done') {
      result = outcome.value;
      failure = null;
    } else if (outcome.kind === 'failed') {
      failure = reasonOf(outcome.error);
    } else return;
    show();
    versions.dispatchEvent(new Event('known'));
  };
  heads.choice.watch(show);
  language.watch(show);
  withEngine((next) => {
    engine = next;
    return run();
  });
  const choose = selectField(
    (s) => s.keras.choose,
    layer.cases,
    (_, choice) => choice.replace(/^(000|002|mha)_/u, '').replaceAll('_', ' '),
    layer.cases[0],
    (choice) => {
      name = choice;
      void run();
    },
  );
  return h(
    'article.step.keras',
    {},
    h(
      'div.step-text',
      {},
      say(h('p.source'), (s) => s.keras[layer.id].source),
      say(h('h3'), (s) => s.keras[layer.id].title),
      say(h('p'), (s) => s.keras[layer.id].text),
      codeBlock(layer.code),
      choose,
      verdict,
    ),
    h('div.step-figures', {}, ours.element, theirs.element, heads.element, weights.element),
  );
}

export function kerasSection(): HTMLElement {
  const section = sectionFrame(
    'keras',
    (s) => s.keras.title,
    null,
    (s) => s.keras.intro,
  );
  const versions = h('p.aside');
  const words = () => {
    const known = versions.dataset.versions;
    versions.textContent = known ? t().keras.versions(known) : '';
  };
  versions.addEventListener('known', words);
  language.watch(words);
  section.append(...LAYERS.map((layer) => layerArticle(layer, versions)), versions);
  return section;
}
