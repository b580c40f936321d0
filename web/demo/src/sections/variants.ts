// Demo, section: document 002's variants. Two layers, one change at a time, the same sentence and seed.
import { h, rich } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { engineState, withEngine } from '../engine-host.ts';
import { createSignal, type Signal } from '../signal.ts';
import { LiveRun } from '../live-run.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { commonMaximum } from '../heatmap/data.ts';
import { HeadPicker } from '../parts/head-picker.ts';
import { runStatus } from '../parts/run-status.ts';
import { selectField } from '../parts/fields.ts';
import { showWeights } from '../parts/weights-view.ts';
import { largestDifference } from '../../../examples/lib/matrix.mjs';
import {
  CHOICES,
  HEAD_COUNTS,
  PLAIN_VARIANT,
  layerOptions,
  runVariant,
  type Variant,
  type VariantResult,
} from '../../../examples/lib/variants.mjs';
import { sectionFrame, shapeText } from './frame.ts';
import { introSentence } from './intro.ts';

interface Pair {
  a: VariantResult | null;
  b: VariantResult | null;
}

/** The options as one would write them. */
function codeOf(variant: Variant): string {
  const { seed: _, ...options } = layerOptions(variant);
  const text = JSON.stringify(options, null, 1)
    .replaceAll('"', "'")
    .replace(/'(\w+)':/gu, '$1:')
    .replace(/\{\s*type/u, '{ type')
    .replace(/\n\s{2,}/gu, ' ')
    .replace(/\s+\}/gu, ' }')
    .replace(/\n /gu, '\n  ')
    .replace(/ \}$/u, ' }');
  return `engine.multiHeadAttention(${text})`;
}

interface Side {
  element: HTMLElement;
  show(result: VariantResult | null, outputMax: number): void;
}

function sideOf(name: 'left' | 'right', variant: Signal<Variant>): Side {
  const weights = new HeatMap({ title: () => t().variants.weights });
  let shape = '';
  const output = new HeatMap({ title: () => t().variants.output, note: () => shape });
  const heads = new HeadPicker(variant.get().heads);
  const code = h('code');
  const explain = h('ul.explain');
  const kernels = h('p.kernels');
  let result: VariantResult | null = null;
  let outputMax = 1;
  const change = (part: Partial<Variant>) => variant.set({ ...variant.get(), ...part });
  const words = () => {
    const s = t().variants;
    const now = variant.get();
    code.textContent = codeOf(now);
    explain.replaceChildren(
      ...[now.merge, now.projection, now.score].map((choice) =>
        h('li', {}, h('strong', {}, s.options[choice]), ' · ', s.explain[choice]),
      ),
    );
    kernels.textContent = result
      ? `${result.kernels.map((kernel) => `${kernel.name} ${shapeText(kernel.shape)}`).join(' · ')} · ${s.parameters(result.parameters)}`
      : '';
  };
  const draw = () => {
    words();
    if (!result) return;
    const { tokens } = result;
    heads.setHeads(result.variant.heads);
    showWeights(
      weights,
      result.weights,
      heads.choice.get(),
      {
        rows: { labels: tokens, role: 'query', sequence: 'intro' },
        columns: { labels: tokens, role: 'key', sequence: 'intro' },
      },
      false,
    );
    shape = shapeText(result.output.shape);
    output.show({
      values: result.output.data,
      rows: { labels: tokens, role: 'token', sequence: 'intro' },
      columns: {
        labels: Array.from({ length: result.output.shape[2] }, (_, i) => t().map.dimension(i + 1)),
        role: 'column',
      },
      scale: { kind: 'signed', max: outputMax },
    });
  };
  heads.choice.watch(draw);
  language.watch(draw);
  variant.watch(words);
  const element = h(
    'article.variant',
    {},
    say(h('h3'), (s) => s.variants[name]),
    h(
      'div.variant-fields',
      {},
      selectField(
        (s) => s.variants.heads,
        HEAD_COUNTS.map(String),
        (_, choice) => choice,
        String(variant.get().heads),
        (choice) => change({ heads: Number(choice) }),
      ),
      selectField(
        (s) => s.variants.merge,
        CHOICES.merge,
        (s, choice) => s.variants.options[choice],
        variant.get().merge,
        (merge) => change({ merge }),
      ),
      selectField(
        (s) => s.variants.projection,
        CHOICES.projection,
        (s, choice) => s.variants.options[choice],
        variant.get().projection,
        (projection) => change({ projection }),
      ),
      selectField(
        (s) => s.variants.score,
        CHOICES.score,
        (s, choice) => s.variants.options[choice],
        variant.get().score,
        (score) => change({ score }),
      ),
    ),
    explain,
    h('pre.code', { tabindex: 0 }, code),
    heads.element,
    weights.element,
    output.element,
    kernels,
  );
  return {
    element,
    show(next, max) {
      result = next;
      outputMax = max;
      draw();
    },
  };
}

export function variantsSection(): HTMLElement {
  const section = sectionFrame(
    'variants',
    (s) => s.variants.title,
    (s) => s.variants.source,
    (s) => s.variants.intro,
  );
  const a = createSignal<Variant>({ ...PLAIN_VARIANT });
  const b = createSignal<Variant>({ ...PLAIN_VARIANT, score: 'cosine' });
  const left = sideOf('left', a);
  const right = sideOf('right', b);
  const verdict = h('p.verdict', { role: 'status' });
  let pair: Pair | null = null;
  const words = () => {
    if (!pair?.a || !pair.b) return;
    const s = t().variants;
    const difference = largestDifference(pair.a.output.data, pair.b.output.data);
    verdict.replaceChildren(
      ...rich(difference === 0 ? s.same : s.difference(difference.toFixed(3))),
    );
  };
  const run = new LiveRun<Pair | null>(
    async (signal) => {
      const state = engineState.get();
      if (state.kind !== 'ready') return null;
      const text = introSentence.get();
      return {
        a: await runVariant(state.engine, text, a.get(), { signal }),
        b: await runVariant(state.engine, text, b.get(), { signal }),
      };
    },
    (result) => {
      if (!result?.a || !result.b) return;
      pair = result;
      const max = commonMaximum(result.a.output.data, result.b.output.data);
      left.show(result.a, max);
      right.show(result.b, max);
      words();
    },
  );
  language.watch(words);
  introSentence.changed(() => run.soon());
  a.changed(() => run.soon());
  b.changed(() => run.soon());
  withEngine(() => run.now());
  section.append(h('div.variants', {}, left.element, right.element), verdict, runStatus(run));
  return section;
}
