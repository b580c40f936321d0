// Demo, section: document 001 step by step. The steps are the computations of examples/lib/transformer.mjs; here they are only shown.
import { h, rich } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { withEngine } from '../engine-host.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { type Axis, commonMaximum, hiddenCells } from '../heatmap/data.ts';
import { ownScaleSwitch } from '../parts/own-scale-switch.ts';
import { walkControls } from '../parts/walk-controls.ts';
import { tokenRow } from '../parts/token-row.ts';
import { showWeights } from '../parts/weights-view.ts';
import { headOf, type Numbers } from '../../../examples/lib/matrix.mjs';
import { SIZES, type Sequence } from '../../../examples/lib/transformer.mjs';
import {
  ownScale,
  walk,
  walkHead,
  walkHeadChoice,
  walkHeadPicker,
  walkRun,
  walkSizes,
  watchWalk,
} from '../walk-state.ts';
import { sectionFrame, shapeText, step } from './frame.ts';

/** A token axis: its labels light up wherever the same sequence appears. */
export function tokenAxis(sequence: Sequence, name: 'source' | 'target', role: Axis['role']): Axis {
  return { labels: sequence.tokens, role, sequence: name, keep: sequence.keep };
}

function dimensions(count: number, group?: number): Axis {
  const labels = Array.from({ length: count }, (_, i) => t().map.dimension(i + 1));
  return { labels, role: 'column', ...(group ? { group } : {}) };
}

/** The shapes of Q on its way into heads. */
function shapeList(): HTMLElement {
  const rows = h('ol.shapes');
  const render = () => {
    const steps = walk.get()?.encoder;
    if (!steps) return;
    const s = t().walk.steps.split;
    const line = (shape: readonly number[], what: string, axes: string) =>
      h(
        'li',
        {},
        h('span.shape', {}, shapeText(shape)),
        h('span', {}, what),
        h('span.axes', {}, axes),
      );
    rows.replaceChildren(
      line(steps.q.shape, s.shapeLinear, s.axes.linear),
      line(steps.qSplit.shape, s.shapeReshape, s.axes.reshape),
      line(steps.qHeads.shape, s.shapeSwap, s.axes.swap),
    );
  };
  walk.watch(render);
  language.watch(render);
  return h(
    'div.shape-list',
    {},
    say(h('h4'), (s) => s.walk.steps.split.shapes),
    rows,
  );
}

export function walkSection(): HTMLElement {
  const section = sectionFrame(
    'steps',
    (s) => s.walk.title,
    (s) => s.walk.source,
    (s) => s.walk.intro(walkSizes.get()),
    (s) => s.walk.weights[walkSizes.get() === SIZES ? 'drawn' : 'trained'],
  );
  const noted = (title: () => string) => {
    let shape = '';
    const map = new HeatMap({ title, note: () => shape });
    return {
      map,
      element: map.element,
      set shape(tensor: Numbers) {
        shape = shapeText(tensor.shape);
      },
    };
  };
  const names = ['Q', 'K', 'V'] as const;
  const f = () => t().walk.figures;
  const m = {
    embedding: noted(() => f().embedding),
    position: noted(() => f().position),
    input: noted(() => f().input),
    kernels: names.map((name) => noted(() => f().kernel(name))),
    projected: names.map((name) => noted(() => name)),
    whole: noted(() => f().whole('Q')),
    perHead: noted(() => f().heads('Q', walkHead.get() + 1)),
    queries: noted(() => f().heads('Q', walkHead.get() + 1)),
    keys: noted(() => f().heads('K', walkHead.get() + 1)),
    products: noted(() => f().scores),
    masked: noted(() => f().masked),
    scaled: noted(() => f().scaled(walkSizes.get().query)),
    weights: noted(() => f().weights),
    values: noted(() => f().heads('V', walkHead.get() + 1)),
    headOutput: noted(() => f().headOutput),
    merged: noted(() => f().merged),
    output: noted(() => f().output),
  };
  const check = h('p.check-line', { role: 'status' });

  const show = () => {
    const now = walk.get();
    if (!now) return;
    const a = now.encoder;
    const { embedding: E, query: D } = now.sizes;
    const rows = tokenAxis(now.source, 'source', 'token');
    const head = walkHead.get();
    const matrix = (
      figure: ReturnType<typeof noted>,
      tensor: Numbers,
      values: Float32Array,
      max: number,
      axes: { rows: Axis; columns: Axis },
      hidden?: Uint8Array,
    ) => {
      figure.shape = tensor;
      figure.map.show({
        values,
        ...axes,
        ...(hidden ? { hidden } : {}),
        scale: { kind: 'signed', max },
      });
    };
    const wide = { rows, columns: dimensions(E) };
    const grouped = { rows, columns: dimensions(E, D) };
    const narrow = { rows, columns: dimensions(D) };

    const inputMax = commonMaximum(
      now.source.embedding.data,
      now.source.position.data,
      now.source.input.data,
    );
    matrix(m.embedding, now.source.embedding, now.source.embedding.data, inputMax, wide);
    matrix(m.position, now.source.position, now.source.position.data, inputMax, wide);
    matrix(m.input, now.source.input, now.source.input.data, inputMax, wide);

    const kernels = [a.kernels.query, a.kernels.key, a.kernels.value];
    const kernelMax = commonMaximum(...kernels.map((kernel) => kernel.data));
    const square = { rows: { ...dimensions(E), role: 'row' as const }, columns: dimensions(E, D) };
    kernels.forEach((kernel, i) => matrix(m.kernels[i], kernel, kernel.data, kernelMax, square));
    const projected = [a.q, a.k, a.v];
    const projectedMax = commonMaximum(...projected.map((tensor) => tensor.data));
    projected.forEach((tensor, i) =>
      matrix(m.projected[i], tensor, tensor.data, projectedMax, grouped),
    );

    matrix(m.whole, a.q, a.q.data, projectedMax, grouped);
    matrix(m.perHead, a.qHeads, headOf(a.qHeads, head), projectedMax, narrow);

    matrix(m.queries, a.qHeads, headOf(a.qHeads, head), projectedMax, narrow);
    matrix(m.keys, a.kHeads, headOf(a.kHeads, head), projectedMax, narrow);

    const pairs = {
      rows: tokenAxis(now.source, 'source', 'query'),
      columns: tokenAxis(now.source, 'source', 'key'),
    };
    const hidden = hiddenCells(headOf(a.masked, head));
    // Q·Kᵀ and its two successors share a scale, so that the division by √D can be seen.
    const scoreMax = commonMaximum(a.products.data);
    matrix(m.products, a.products, headOf(a.products, head), scoreMax, pairs);
    matrix(m.masked, a.masked, headOf(a.masked, head), scoreMax, pairs, hidden);
    matrix(m.scaled, a.scaled, headOf(a.scaled, head), scoreMax, pairs, hidden);

    m.weights.shape = a.weights;
    showWeights(m.weights.map, a.weights, walkHeadChoice(), { ...pairs, hidden }, ownScale.get());

    const valueMax = commonMaximum(a.vHeads.data, a.merged.data);
    matrix(m.values, a.vHeads, headOf(a.vHeads, head), valueMax, narrow);
    matrix(m.headOutput, a.headOutputs, headOf(a.headOutputs, head), valueMax, narrow);

    const outputMax = commonMaximum(a.merged.data, a.output.data);
    matrix(m.merged, a.merged, a.merged.data, outputMax, grouped);
    matrix(m.output, a.output, a.output.data, outputMax, wide);
    words();
  };
  const words = () => {
    const difference = walk.get()?.encoder.difference;
    if (difference === undefined) return;
    const text = difference === 0 ? '0' : difference.toExponential(1);
    check.replaceChildren(...rich(t().walk.steps.merge.check(text)));
  };
  withEngine(() => walkRun.now());
  watchWalk(show);
  language.watch(words);

  const tokens = h(
    'div.token-rows',
    {},
    tokenRow('source', (s) => s.walk.sourceLabel),
    tokenRow('target', (s) => s.walk.targetLabel),
  );
  const all = (figures: { element: HTMLElement }[]) => figures.map((figure) => figure.element);
  section.append(
    walkControls(),
    step(
      1,
      (s) => s.walk.steps.tokens.title,
      (s) => s.walk.steps.tokens.text,
      { figures: [tokens] },
    ),
    step(
      2,
      (s) => s.walk.steps.input.title,
      (s) => s.walk.steps.input.text(walkSizes.get()),
      {
        code: 'e = await engine.embedding(ids, table)\np = await engine\n  .positionalEncoding(L, E)',
        figures: all([m.embedding, m.position, m.input]),
      },
    ),
    step(
      3,
      (s) => s.walk.steps.linear.title,
      (s) => s.walk.steps.linear.text,
      {
        code: 'q = await engine.linear(x, wq, bq)\nk = await engine.linear(x, wk, bk)\nv = await engine.linear(x, wv, bv)',
        figures: all(m.kernels.flatMap((kernel, i) => [kernel, m.projected[i]])),
      },
    ),
    step(
      4,
      (s) => s.walk.steps.split.title,
      (s) => s.walk.steps.split.text(walkSizes.get()),
      {
        extra: [shapeList()],
        figures: [walkHeadPicker(false), m.whole.element, m.perHead.element],
      },
    ),
    step(
      5,
      (s) => s.walk.steps.scores.title,
      (s) => s.walk.steps.scores.text,
      {
        code: "await engine.attention(q, k, v, {\n  scale: 1, returnScores: 'raw' })",
        figures: [walkHeadPicker(false), m.queries.element, m.keys.element, m.products.element],
      },
    ),
    step(
      6,
      (s) => s.walk.steps.mask.title,
      (s) => s.walk.steps.mask.text,
      {
        code: "await engine.attention(q, k, v, {\n  keyPaddingMask, scale: 1,\n  returnScores: 'masked' })",
        figures: [walkHeadPicker(false), m.masked.element],
      },
    ),
    step(
      7,
      (s) => s.walk.steps.scale.title,
      (s) => s.walk.steps.scale.text(walkSizes.get()),
      {
        code: "await engine.attention(q, k, v, {\n  keyPaddingMask, // scale: 1 / √D\n  returnScores: 'masked' })",
        figures: [walkHeadPicker(false), m.scaled.element],
      },
    ),
    step(
      8,
      (s) => s.walk.steps.softmax.title,
      (s) => s.walk.steps.softmax.text,
      {
        code: 'const { weights } =\n  await engine.attention(q, k, v, {\n    keyPaddingMask,\n    returnWeights: true })',
        figures: [walkHeadPicker(true), m.weights.element, ownScaleSwitch()],
      },
    ),
    step(
      9,
      (s) => s.walk.steps.values.title,
      (s) => s.walk.steps.values.text,
      {
        code: 'const { output } =\n  await engine.attention(q, k, v, {\n    keyPaddingMask })',
        figures: [walkHeadPicker(false), m.values.element, m.headOutput.element],
      },
    ),
    step(
      10,
      (s) => s.walk.steps.merge.title,
      (s) => s.walk.steps.merge.text(walkSizes.get()),
      {
        code: 'y = await engine.linear(merged, wo, bo)',
        extra: [check],
        figures: all([m.merged, m.output]),
      },
    ),
  );
  return section;
}
