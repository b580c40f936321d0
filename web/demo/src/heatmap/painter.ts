// Demo, heat map: draws the still part (cells, labels) and, over it, the moving part (the cell pointed at, linked tokens).
import type { Theme } from '../theme.ts';
import { type Axis, type MapData, shortText } from './data.ts';
import { type Layout, columnX, rowY } from './geometry.ts';
import { colourOf, inkOn, paletteOf } from './palette.ts';

type Context = CanvasRenderingContext2D;

/** The page's own font; a canvas does not inherit it. */
export const FONT =
  'ui-sans-serif, system-ui, "Segoe UI", "PingFang SC", "Noto Sans CJK SC", "Microsoft YaHei", sans-serif';
export const LABEL_FONT = `12px ${FONT}`;
const NUMBER_FONT = `11px ${FONT}`;
/** Labels that are stacked when they stand upright, and the height of a character in the stack. */
const STACKED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}…，。！？、；：]+$/u;
const STACK_LINE = 12;
/** Numbers are written into cells at least so wide. */
const NUMBER_WIDTH = 36;

let segmenter: Intl.Segmenter | null | undefined;

/** Cuts a label at whole characters as readers see them: no half emoji, no lost accents. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  segmenter ??= 'Segmenter' in Intl ? new Intl.Segmenter() : null;
  // One character may be many code units long, but not so many that the whole of a huge token need be looked at.
  const head = text.slice(0, limit * 16);
  const characters = segmenter
    ? Array.from(segmenter.segment(head), (part) => part.segment)
    : Array.from(head);
  if (characters.length <= limit && head.length === text.length) return text;
  return `${characters.slice(0, limit - 1).join('')}…`;
}

function hatch(context: Context, x: number, y: number, width: number, height: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  const gap = Math.min(6, Math.max(3, width / 4));
  for (let offset = -height; offset < width; offset += gap) {
    context.moveTo(x + offset, y + height);
    context.lineTo(x + offset + height, y);
  }
  context.stroke();
  context.restore();
}

function drawLabels(
  context: Context,
  axis: Axis,
  layout: Layout,
  across: boolean,
  theme: Theme,
  only?: Set<number>,
): void {
  const palette = paletteOf(theme);
  const step = across ? layout.columnStep : layout.rowStep;
  context.font = only ? `600 ${LABEL_FONT}` : LABEL_FONT;
  axis.labels.forEach((text, index) => {
    if (only ? !only.has(index) : index % step !== 0) return;
    const padding = axis.keep && !axis.keep[index];
    context.fillStyle = only ? palette.focus : padding ? palette.faint : palette.text;
    const short = shorten(text, 12);
    if (!across) {
      context.textAlign = 'right';
      context.textBaseline = 'middle';
      context.fillText(
        short,
        layout.left - 8,
        rowY(layout, index) + layout.cellHeight / 2,
        layout.left - 8,
      );
      return;
    }
    const x = columnX(layout, index, axis.group) + layout.cellWidth / 2;
    if (!layout.upright) {
      context.textAlign = 'center';
      context.textBaseline = 'alphabetic';
      context.fillText(short, x, layout.top - 8);
      return;
    }
    if (STACKED.test(short)) {
      // Chinese is read upright, one character below the other.
      const characters = Array.from(short);
      context.textAlign = 'center';
      context.textBaseline = 'alphabetic';
      characters.forEach((character, place) => {
        context.fillText(
          character,
          x,
          layout.top - 8 - (characters.length - 1 - place) * STACK_LINE,
        );
      });
      return;
    }
    context.save();
    context.translate(x, layout.top - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(short, 0, 0);
    context.restore();
  });
}

/** Cells and labels. */
export function paintStill(context: Context, data: MapData, layout: Layout, theme: Theme): void {
  const palette = paletteOf(theme);
  const rows = data.rows.labels.length;
  const columns = data.columns.labels.length;
  const { cellWidth, cellHeight } = layout;
  const gap = cellWidth >= 8 ? 1 : 0;
  const numbers = cellWidth >= NUMBER_WIDTH && cellHeight >= 18;
  context.clearRect(0, 0, layout.width, layout.height);
  context.lineWidth = 1;
  context.font = NUMBER_FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const index = row * columns + column;
      const x = columnX(layout, column, data.columns.group);
      const y = rowY(layout, row);
      if (data.hidden?.[index]) {
        context.strokeStyle = palette.hatch;
        hatch(context, x, y, cellWidth - gap, cellHeight - gap);
        continue;
      }
      const value = data.values[index];
      if (!Number.isFinite(value)) continue;
      const colour = colourOf(value, data.scale, theme);
      context.fillStyle = `rgb(${colour.join(' ')})`;
      context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
      if (numbers) {
        context.fillStyle = inkOn(colour);
        context.fillText(
          shortText(value),
          x + (cellWidth - gap) / 2,
          y + (cellHeight - gap) / 2 + 0.5,
        );
      }
    }
  }
  // A frame, so that a cell of value 0 still has an edge against the page.
  context.strokeStyle = palette.line;
  const size = data.columns.group ?? columns;
  for (let start = 0; start < columns; start += size) {
    const x = columnX(layout, start, data.columns.group);
    const width = Math.min(size, columns - start) * cellWidth;
    context.strokeRect(x - 0.5, layout.top - 0.5, width, rows * cellHeight);
  }
  drawLabels(context, data.rows, layout, false, theme);
  drawLabels(context, data.columns, layout, true, theme);
}

export interface Moving {
  cell: { row: number; column: number } | null;
  rows: Set<number>;
  columns: Set<number>;
}

/** What follows the pointer, drawn over the still picture. */
export function paintMoving(
  context: Context,
  data: MapData,
  layout: Layout,
  theme: Theme,
  moving: Moving,
): void {
  const palette = paletteOf(theme);
  const rows = data.rows.labels.length;
  const columns = data.columns.labels.length;
  const right = columnX(layout, columns - 1, data.columns.group) + layout.cellWidth;
  context.fillStyle = palette.band;
  for (const row of moving.rows) {
    context.fillRect(0, rowY(layout, row), layout.left - 4, layout.cellHeight);
  }
  for (const column of moving.columns) {
    context.fillRect(
      columnX(layout, column, data.columns.group),
      0,
      layout.cellWidth - 1,
      layout.top - 4,
    );
  }
  drawLabels(context, data.rows, { ...layout, rowStep: 1 }, false, theme, moving.rows);
  drawLabels(context, data.columns, { ...layout, columnStep: 1 }, true, theme, moving.columns);
  if (!moving.cell) return;
  const { row, column } = moving.cell;
  const x = columnX(layout, column, data.columns.group);
  const y = rowY(layout, row);
  context.strokeStyle = palette.focus;
  context.lineWidth = 1;
  context.globalAlpha = 0.45;
  context.strokeRect(layout.left - 0.5, y - 0.5, right - layout.left, layout.cellHeight);
  context.strokeRect(x - 0.5, layout.top - 0.5, layout.cellWidth, rows * layout.cellHeight);
  context.globalAlpha = 1;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, layout.cellWidth + 1, layout.cellHeight + 1);
}
