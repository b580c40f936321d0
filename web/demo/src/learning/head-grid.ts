// Demo, learning: the maps of every layer and head of one kind of attention, side by side under one legend.
import { h } from '../dom.ts';
import { t } from '../i18n/index.ts';
import { HeatMap } from '../heatmap/heat-map.ts';
import { type Axis, commonMaximum } from '../heatmap/data.ts';
import { createLegend } from '../heatmap/legend.ts';
import { headOf, type Numbers } from '../../../examples/lib/matrix.mjs';

export interface GridAxes {
  rows: Axis;
  columns: Axis;
  hidden?: Uint8Array;
}

export class HeadGrid {
  readonly element: HTMLElement;
  #maps: HeatMap[][];
  #legend = createLegend();

  constructor(layers: number, heads: number) {
    this.#maps = Array.from({ length: layers }, (_, layer) =>
      Array.from(
        { length: heads },
        (_, head) =>
          new HeatMap({ title: () => t().learning.layerHead(layer + 1, head + 1), plain: true }),
      ),
    );
    this.element = h(
      'div.head-grid',
      {},
      h('div.hero-maps', {}, ...this.#maps.flat().map((map) => map.element)),
      h('div.hero-foot', {}, this.#legend.element),
    );
  }

  /**
   * @param layers weights [1,H,L,S] of each layer
   * @param pick what is shown of a head's matrix; default: all of it
   * @param shared one scale for all maps, up to the largest share; default: up to 1
   */
  show(
    layers: readonly Numbers[],
    axes: GridAxes,
    pick: (matrix: Float32Array) => Float32Array = (matrix) => matrix,
    shared = false,
  ): void {
    const values = layers.map((weights) =>
      Array.from({ length: weights.shape[1] }, (_, head) => pick(headOf(weights, head))),
    );
    const max = shared ? commonMaximum(...values.flat()) : 1;
    values.forEach((heads, layer) =>
      heads.forEach((matrix, head) =>
        this.#maps[layer][head].show({ values: matrix, ...axes, scale: { kind: 'share', max } }),
      ),
    );
    this.#legend.show({ kind: 'share', max }, axes.hidden?.includes(1) ?? false);
  }
}

/** What a causal mask hides of a square of tokens. */
export function causalHidden(length: number): Uint8Array {
  return Uint8Array.from({ length: length * length }, (_, i) =>
    Number(i % length > Math.floor(i / length)),
  );
}
