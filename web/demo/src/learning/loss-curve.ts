// Demo, learning: the loss, step by step, drawn by uPlot: each step's, and their running mean. Old points are kept; what is drawn
// follows at the next frame.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from '../dom.ts';
import { language, t } from '../i18n/index.ts';
import { theme } from '../theme.ts';

const HEIGHT = 190;
/** Weight of what was before in the running mean. */
const MEMORY = 0.9;

export class LossCurve {
  readonly element = h('figure.curve');
  #stage = h('div.curve-stage', { role: 'img' });
  #caption = h('figcaption');
  #plot: uPlot | null = null;
  #losses: readonly number[];
  #steps: number[] = [];
  #means: number[] = [];
  #frame = 0;
  /** A level to compare with, in the loss's unit. */
  #level: number | null;

  /** @param losses is read, never written; call `follow` when it has grown or begun anew. */
  constructor(losses: readonly number[], level: number | null = null) {
    this.#losses = losses;
    this.#level = level;
    this.element.append(this.#caption, this.#stage);
    theme.watch(() => this.#build());
    language.watch(() => this.#build());
    new ResizeObserver(() => {
      this.#plot?.setSize({ width: this.#width(), height: HEIGHT });
    }).observe(this.element);
  }

  follow(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#grow();
      this.#plot?.setData(this.#data());
      this.#words();
    });
  }

  #width(): number {
    return Math.max(200, this.element.clientWidth);
  }

  #grow(): void {
    if (this.#losses.length < this.#steps.length) this.#steps.length = this.#means.length = 0;
    for (let i = this.#steps.length; i < this.#losses.length; i++) {
      const before = i === 0 ? this.#losses[0] : this.#means[i - 1];
      this.#steps.push(i + 1);
      this.#means.push(MEMORY * before + (1 - MEMORY) * this.#losses[i]);
    }
  }

  #data(): uPlot.AlignedData {
    const data: number[][] = [this.#steps, this.#losses.slice(0, this.#steps.length), this.#means];
    if (this.#level !== null) data.push(this.#steps.map(() => this.#level as number));
    return data as uPlot.AlignedData;
  }

  #words(): void {
    const s = t().learning;
    const last = this.#means.at(-1);
    this.#caption.textContent = s.curve;
    this.#stage.setAttribute(
      'aria-label',
      last === undefined
        ? s.curveEmpty
        : s.curveWords(this.#steps.length, this.#means[0].toFixed(2), last.toFixed(2)),
    );
  }

  #build(): void {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const s = t().learning;
    const axis: uPlot.Axis = {
      stroke: colour('--muted'),
      font: '12px system-ui, sans-serif',
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1 },
    };
    const series: uPlot.Series[] = [
      { label: s.step },
      { label: s.loss, stroke: `${colour('--accent')}66`, width: 1, points: { show: false } },
      { label: s.mean, stroke: colour('--accent'), width: 2, points: { show: false } },
    ];
    if (this.#level !== null)
      series.push({
        label: s.fiveGram,
        stroke: colour('--bad'),
        width: 1.5,
        dash: [6, 4],
        points: { show: false },
      });
    const value: uPlot.Series.Value = (_, number) =>
      number === null || number === undefined ? '–' : number.toFixed(3);
    for (const line of series.slice(1)) line.value = value;
    this.#plot?.destroy();
    this.#grow();
    this.#plot = new uPlot(
      {
        width: this.#width(),
        height: HEIGHT,
        series,
        scales: {
          x: { time: false, range: (_, low, high) => [low ?? 0, Math.max(high ?? 1, 20)] },
          y: { range: (_, __, high) => [0, Math.max(high ?? 1, 0.1) * 1.05] },
        },
        axes: [axis, { ...axis, size: 44 }],
        cursor: { drag: { x: false, y: false } },
      },
      this.#data(),
      this.#stage,
    );
    this.#words();
  }
}
