// Demo, section: the three places of attention in a Transformer, side by side, with what each hides.
import { h } from '../dom.ts';
import { say, t } from '../i18n/index.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { hiddenCells } from '../heatmap/data.ts';
import { SIZES } from '../../../examples/lib/transformer.mjs';
import { headOf } from '../../../examples/lib/matrix.mjs';
import { ownScaleSwitch } from '../parts/own-scale-switch.ts';
import { showWeights } from '../parts/weights-view.ts';
import {
  ownScale,
  walk,
  walkHeadChoice,
  walkHeadPicker,
  walkSizes,
  watchWalk,
} from '../walk-state.ts';
import { codeBlock, sectionFrame, shapeText } from './frame.ts';
import { tokenAxis } from './walkthrough.ts';

const KINDS = [
  {
    kind: 'encoder',
    rows: 'source',
    columns: 'source',
    code: 'q = k = v = source\n{ keyPaddingMask: sourcePadding }',
  },
  {
    kind: 'decoder',
    rows: 'target',
    columns: 'target',
    code: 'q = k = v = target\n{ keyPaddingMask: targetPadding,\n  causal: true }',
  },
  {
    kind: 'cross',
    rows: 'target',
    columns: 'source',
    code: 'q = decoder, k = v = encoder\n{ keyPaddingMask: sourcePadding }',
  },
] as const;

export function kindsSection(): HTMLElement {
  const section = sectionFrame(
    'attentions',
    (s) => s.kinds.title,
    null,
    (s) => s.kinds.intro,
  );
  const shapes = { encoder: '', decoder: '', cross: '' };
  const parts = KINDS.map(({ kind, rows, columns, code }) => {
    const map = new HeatMap({
      title: () => t().map.query + ' × ' + t().map.key,
      note: () => shapes[kind],
    });
    const show = () => {
      const now = walk.get();
      if (!now) return;
      const steps = now[kind];
      shapes[kind] = shapeText(steps.weights.shape);
      showWeights(
        map,
        steps.weights,
        walkHeadChoice(),
        {
          rows: tokenAxis(now[rows], rows, 'query'),
          columns: tokenAxis(now[columns], columns, 'key'),
          hidden: hiddenCells(headOf(steps.masked, 0)),
        },
        ownScale.get(),
      );
    };
    watchWalk(show);
    return h(
      'article.kind',
      {},
      say(h('h3'), (s) => s.kinds[kind].title),
      say(h('p'), (s) => s.kinds[kind].text),
      codeBlock(code),
      map.element,
    );
  });
  section.append(
    h('div.kinds-controls', {}, walkHeadPicker(true), ownScaleSwitch()),
    h('div.kinds', {}, ...parts),
    say(h('p.aside'), (s) => s.kinds.note[walkSizes.get() === SIZES ? 'drawn' : 'trained']),
  );
  return section;
}
