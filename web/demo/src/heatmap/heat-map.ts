// Demo, heat map: the figure. A canvas for the picture, one line of text for the value pointed at (by mouse, finger or keys),
// a legend, a table. One canvas a matrix, never an element a cell: 64 × 64 costs no more nodes than 2 × 2.
import { freshId, h } from '../dom.ts';
import { language, t } from '../i18n/index.ts';
import { theme } from '../theme.ts';
import { type MapData, valueText } from './data.ts';
import { type Layout, cellAt, layOut } from './geometry.ts';
import { createLegend } from './legend.ts';
import { type TokenPlace, pointedIndices, pointedTokens } from './linked.ts';
import { LABEL_FONT, paintMoving, paintStill, shorten } from './painter.ts';
import { ValueTable } from './value-table.ts';

/** Labels beyond so many pixels are shortened, so that one long word does not eat the picture. */
const LABEL_MAX = 84;
const FALLBACK_WIDTH = 320;

let measuring: CanvasRenderingContext2D | null = null;
/** Many maps share one list of tokens; measuring 64 words once is enough. */
const measured = new WeakMap<string[], number>();

function widest(labels: string[]): number {
  const known = measured.get(labels);
  if (known !== undefined) return known;
  measuring ??= document.createElement('canvas').getContext('2d');
  if (!measuring) return 40;
  measuring.font = LABEL_FONT;
  let width = 0;
  for (const text of labels)
    width = Math.max(width, measuring.measureText(shorten(text, 12)).width);
  width = Math.min(LABEL_MAX, width);
  measured.set(labels, width);
  return width;
}

export interface HeatMapOptions {
  /** In the reader's language, asked for again when that changes. */
  title: () => string;
  /** Stands beside the title: a shape such as (1, 4, 6). */
  note?: () => string;
  /** One of several maps that share a legend goes without its own. */
  plain?: boolean;
}

/** Maps out of sight are not drawn before they come near: of thirty maps of 64 × 64, two or three cost anything. */
const nearby = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries)
      byElement.get(target)?.comesNear(isIntersecting);
  },
  { rootMargin: '300px' },
);
const byElement = new WeakMap<Element, HeatMap>();

export class HeatMap {
  readonly element: HTMLElement;
  #options: HeatMapOptions;
  #data: MapData | null = null;
  #layout: Layout | null = null;
  #cell: { row: number; column: number } | null = null;
  #still = document.createElement('canvas');
  #canvas = h('canvas', { 'aria-hidden': 'true' });
  #stage: HTMLElement;
  #readout = h('output.map-readout', { 'aria-live': 'polite' });
  #title = h('span.map-title');
  #note = h('span.map-note');
  #message = h('p.map-message', { hidden: true, role: 'status' });
  #legend = createLegend();
  #table = new ValueTable();
  #tableButton = h('button.table-toggle', { type: 'button', 'aria-expanded': 'false' });
  #frame = 0;
  #near = false;
  /** The still picture is older than the data. */
  #stale = false;

  constructor(options: HeatMapOptions) {
    this.#options = options;
    const titleId = freshId('map');
    this.#title.id = titleId;
    this.#stage = h('div.map-stage', { tabindex: 0, role: 'application' }, this.#canvas);
    this.#tableButton.addEventListener('click', () => {
      this.#table.open = !this.#table.open;
      this.#tableButton.setAttribute('aria-expanded', String(this.#table.open));
      this.#words();
    });
    this.element = h(
      'figure.map',
      {},
      h('figcaption', {}, this.#title, this.#note, this.#tableButton),
      this.#stage,
      this.#message,
      this.#readout,
      options.plain ? null : this.#legend.element,
      this.#table.element,
    );
    this.#listen();
    language.watch(() => this.#words());
    theme.watch(() => this.#paint());
    pointedTokens.watch(() => this.#soon());
    new ResizeObserver(() => this.#measure()).observe(this.element);
    byElement.set(this.element, this);
    nearby.observe(this.element);
  }

  /** Told by the observer of what is in sight. */
  comesNear(near: boolean): void {
    this.#near = near;
    if (near && this.#stale) this.#paint();
  }

  /** Shows a matrix. Labels that do not fit the matrix are told in words; nothing wrong is drawn. */
  show(data: MapData): void {
    const rows = data.rows.labels.length;
    const columns = data.columns.labels.length;
    this.#data = data;
    if (this.#cell && (this.#cell.row >= rows || this.#cell.column >= columns)) this.#cell = null;
    const fits = data.values.length === rows * columns;
    this.#stage.hidden = !fits || data.values.length === 0;
    this.#message.hidden = !this.#stage.hidden;
    this.#legend.show(data.scale, data.hidden?.includes(1) ?? false);
    this.#words();
    if (fits) this.#measure();
  }

  #words(): void {
    const s = t();
    const title = this.#options.title();
    this.#title.textContent = title;
    this.#note.textContent = this.#options.note?.() ?? '';
    this.#tableButton.textContent = this.#table.open ? s.map.closeTable : s.map.table;
    this.#tableButton.setAttribute('aria-label', `${this.#tableButton.textContent}: ${title}`);
    const data = this.#data;
    if (data) {
      const rows = data.rows.labels.length;
      const columns = data.columns.labels.length;
      this.#stage.setAttribute('aria-label', s.map.description(title, rows, columns));
      const size = data.values.length;
      this.#message.textContent =
        size === rows * columns
          ? s.map.nothing
          : rows > 0 && size % rows === 0
            ? s.map.mismatch(columns, size / rows, s.map.columns)
            : s.map.mismatch(rows, columns > 0 ? size / columns : size, s.map.rows.toLowerCase());
      if (size === rows * columns) this.#table.show(data, title);
    } else {
      this.#stage.setAttribute('aria-label', title);
    }
    this.#read();
  }

  /** The value pointed at, in words. */
  #read(): void {
    const s = t();
    const data = this.#data;
    const cell = this.#cell;
    if (!data || !cell) {
      this.#readout.textContent = '';
      return;
    }
    const index = cell.row * data.columns.labels.length + cell.column;
    const value = data.hidden?.[index] ? s.map.hidden : valueText(data.values[index]);
    this.#readout.textContent = s.map.cell(
      s.map[data.rows.role],
      shorten(data.rows.labels[cell.row], 40),
      s.map[data.columns.role],
      shorten(data.columns.labels[cell.column], 40),
      value,
    );
  }

  #point(cell: { row: number; column: number } | null): void {
    if (this.#cell?.row === cell?.row && this.#cell?.column === cell?.column) return;
    this.#cell = cell;
    this.#read();
    const places: TokenPlace[] = [];
    if (cell && this.#data) {
      const { rows, columns } = this.#data;
      if (rows.sequence) places.push({ sequence: rows.sequence, index: cell.row });
      if (columns.sequence) places.push({ sequence: columns.sequence, index: cell.column });
    }
    pointedTokens.set(places);
    this.#soon();
  }

  #listen(): void {
    const at = (event: PointerEvent) => {
      const data = this.#data;
      if (!data || !this.#layout) return null;
      const box = this.#canvas.getBoundingClientRect();
      return cellAt(
        this.#layout,
        data.rows.labels.length,
        data.columns.labels.length,
        data.columns.group,
        event.clientX - box.left,
        event.clientY - box.top,
      );
    };
    this.#stage.addEventListener('pointermove', (event) => this.#point(at(event)));
    this.#stage.addEventListener('pointerdown', (event) => this.#point(at(event)));
    this.#stage.addEventListener('pointerleave', (event) => {
      // A finger that lifts leaves its cell chosen; there is no other way to read it.
      if (event.pointerType === 'mouse') this.#point(null);
    });
    this.#stage.addEventListener('blur', () => this.#point(null));
    this.#stage.addEventListener('keydown', (event) => {
      const data = this.#data;
      if (!data || event.altKey || event.metaKey) return;
      const lastRow = data.rows.labels.length - 1;
      const lastColumn = data.columns.labels.length - 1;
      const { row, column } = this.#cell ?? { row: -1, column: -1 };
      const first = this.#cell === null;
      let next: { row: number; column: number } | null;
      if (event.key === 'ArrowRight')
        next = first ? { row: 0, column: 0 } : { row, column: Math.min(lastColumn, column + 1) };
      else if (event.key === 'ArrowLeft')
        next = first ? { row: 0, column: 0 } : { row, column: Math.max(0, column - 1) };
      else if (event.key === 'ArrowDown')
        next = first ? { row: 0, column: 0 } : { row: Math.min(lastRow, row + 1), column };
      else if (event.key === 'ArrowUp')
        next = first ? { row: 0, column: 0 } : { row: Math.max(0, row - 1), column };
      else if (event.key === 'Home') next = { row: event.ctrlKey || first ? 0 : row, column: 0 };
      else if (event.key === 'End')
        next = { row: event.ctrlKey ? lastRow : Math.max(0, row), column: lastColumn };
      else if (event.key === 'Escape') next = null;
      else return;
      event.preventDefault();
      this.#point(next);
    });
  }

  #measure(): void {
    const data = this.#data;
    if (!data || this.#stage.hidden) return;
    const columns = data.columns.labels.length;
    this.#layout = layOut({
      rows: data.rows.labels.length,
      columns,
      available: this.element.clientWidth || FALLBACK_WIDTH,
      rowLabelWidth: widest(data.rows.labels),
      columnLabelWidth: widest(data.columns.labels),
      square: data.scale.kind === 'share',
      groupGaps: data.columns.group ? Math.ceil(columns / data.columns.group) - 1 : 0,
    });
    this.#paint();
  }

  #paint(): void {
    const data = this.#data;
    const layout = this.#layout;
    if (!data || !layout || this.#stage.hidden) return;
    // The place is kept in any case, so that nothing jumps when the picture comes.
    this.#canvas.style.width = `${layout.width}px`;
    this.#canvas.style.height = `${layout.height}px`;
    this.#stale = !this.#near;
    if (this.#stale) return;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    for (const canvas of [this.#still, this.#canvas]) {
      canvas.width = Math.round(layout.width * ratio);
      canvas.height = Math.round(layout.height * ratio);
    }
    const context = this.#still.getContext('2d');
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintStill(context, data, layout, theme.get());
    this.#overlay();
  }

  #soon(): void {
    if (this.#frame !== 0 || !this.#near) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#overlay();
    });
  }

  #overlay(): void {
    const data = this.#data;
    const layout = this.#layout;
    const context = this.#canvas.getContext('2d');
    if (!data || !layout || !context || this.#stage.hidden || this.#stale) return;
    const ratio = this.#canvas.width / layout.width;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.drawImage(this.#still, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const places = pointedTokens.get();
    const rows = pointedIndices(places, data.rows.sequence);
    const columns = pointedIndices(places, data.columns.sequence);
    if (this.#cell) {
      // In the map pointed at, only the row's and the column's own token light up.
      rows.clear();
      columns.clear();
      rows.add(this.#cell.row);
      columns.add(this.#cell.column);
    }
    const within = (indices: Set<number>, count: number) =>
      new Set([...indices].filter((index) => index < count));
    paintMoving(context, data, layout, theme.get(), {
      cell: this.#cell,
      rows: within(rows, data.rows.labels.length),
      columns: within(columns, data.columns.labels.length),
    });
  }
}
