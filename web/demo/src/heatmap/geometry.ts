// Demo, heat map: sizes and places, pure arithmetic. Tested without a canvas.

export interface Layout {
  /** Where the cells begin. */
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  /** Of the whole picture. */
  width: number;
  height: number;
  /** Every how manyth label has room. */
  rowStep: number;
  columnStep: number;
  /** Column labels stand upright when they are wider than a cell. */
  upright: boolean;
}

export interface Request {
  rows: number;
  columns: number;
  /** Width that the page has to give. */
  available: number;
  rowLabelWidth: number;
  columnLabelWidth: number;
  /** Shares are squares; other matrices may be flatter. */
  square: boolean;
  /** Gaps between groups of columns. */
  groupGaps?: number;
}

const MAX_CELL = 62;
const FLAT_CELL = 34;
const MIN_FLAT = 7;
/** Height that matrices other than squares are kept to, as far as MIN_FLAT allows. */
const TALLEST = 480;
const LABEL_LINE = 15;
const GAP = 8;
/** Between groups of columns. */
export const GROUP_GAP = 8;

export function layOut(request: Request): Layout {
  const {
    rows,
    columns,
    available,
    rowLabelWidth,
    columnLabelWidth,
    square,
    groupGaps = 0,
  } = request;
  const left = Math.ceil(rowLabelWidth) + GAP;
  const room = Math.max(0, available - left - 1 - groupGaps * GROUP_GAP);
  const fitting = columns > 0 ? room / columns : MAX_CELL;
  // Whole pixels keep the squares crisp; below 6 pixels that would waste too much of the width.
  const cellWidth = Math.min(MAX_CELL, fitting >= 6 ? Math.floor(fitting) : fitting);
  // A long sentence's vectors would make a tower; they get flatter instead.
  const flat = Math.min(FLAT_CELL, Math.max(MIN_FLAT, TALLEST / Math.max(1, rows)));
  const cellHeight = Math.min(cellWidth, square ? 46 : flat);
  const upright = columnLabelWidth > cellWidth - 4;
  const top = (upright ? Math.ceil(columnLabelWidth) : LABEL_LINE) + GAP;
  return {
    left,
    top,
    cellWidth,
    cellHeight,
    width: Math.ceil(left + columns * cellWidth + groupGaps * GROUP_GAP) + 1,
    height: Math.ceil(top + rows * cellHeight) + 1,
    rowStep: Math.max(1, Math.ceil(12 / Math.max(cellHeight, 0.1))),
    columnStep: upright ? Math.max(1, Math.ceil(12 / Math.max(cellWidth, 0.1))) : 1,
    upright,
  };
}

/** Left edge of a column. */
export function columnX(layout: Layout, column: number, group: number | undefined): number {
  return (
    layout.left + column * layout.cellWidth + (group ? Math.floor(column / group) * GROUP_GAP : 0)
  );
}

/** Top edge of a row. */
export function rowY(layout: Layout, row: number): number {
  return layout.top + row * layout.cellHeight;
}

/** The cell under a point, or null beside all cells. */
export function cellAt(
  layout: Layout,
  rows: number,
  columns: number,
  group: number | undefined,
  x: number,
  y: number,
): { row: number; column: number } | null {
  const row = Math.floor((y - layout.top) / layout.cellHeight);
  if (row < 0 || row >= rows) return null;
  for (let column = 0; column < columns; column++) {
    const left = columnX(layout, column, group);
    if (x >= left && x < left + layout.cellWidth) return { row, column };
  }
  return null;
}
