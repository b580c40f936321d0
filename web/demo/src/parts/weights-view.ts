// Demo, part: attention weights of several heads: a map, a choice of heads, and the switch that scales each head by itself.
import { type HeatMap } from '../heatmap/heat-map.ts';
import { type Axis, commonMaximum } from '../heatmap/data.ts';
import { headOf, meanOfHeads, type Numbers } from '../../../examples/lib/matrix.mjs';
import { type HeadChoice } from './head-picker.ts';

/** Shows one head's weights, or their mean, from 0 to 1; by its own maximum only where the reader asked for it. */
export function showWeights(
  map: HeatMap,
  weights: Numbers,
  choice: HeadChoice,
  axes: { rows: Axis; columns: Axis; hidden?: Uint8Array },
  ownScale: boolean,
): void {
  const values = choice === 'average' ? meanOfHeads(weights) : headOf(weights, choice);
  map.show({
    values,
    rows: axes.rows,
    columns: axes.columns,
    ...(axes.hidden ? { hidden: axes.hidden } : {}),
    scale: { kind: 'share', max: ownScale ? commonMaximum(values) : 1 },
  });
}
