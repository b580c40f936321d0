// Demo, heat map: what a map shows. Plain data, made by the sections.

/** How a colour is found for a number: shares from 0 to `max`, or signed numbers from −max to max. */
export interface ColourScale {
  kind: 'share' | 'signed';
  max: number;
}

/** Rows or columns of a map. */
export interface Axis {
  /** One for each row or column. */
  labels: string[];
  /** What they are: 'query', 'key', 'token' or 'column'; the word is in the translations. */
  role: 'query' | 'key' | 'token' | 'column' | 'row';
  /** Maps with the same sequence light up together. */
  sequence?: string;
  /** 1 where the label is a real token, 0 where it is padding; padding is written paler. */
  keep?: Uint8Array;
  /** Columns are drawn in groups of so many (the heads of a matrix). */
  group?: number;
}

export interface MapData {
  /** Row-major, rows.labels.length × columns.labels.length. */
  values: Float32Array;
  /** 1 where a cell is hidden by the mask. */
  hidden?: Uint8Array;
  rows: Axis;
  columns: Axis;
  scale: ColourScale;
}

/** Where −∞ stands, the mask has hidden. */
export function hiddenCells(scores: ArrayLike<number>): Uint8Array {
  return Uint8Array.from(scores, (score) => (score === -Infinity ? 1 : 0));
}

/** The largest absolute finite value of several matrices, so that they can share a scale; 1 when all are 0. */
export function commonMaximum(...matrices: ArrayLike<number>[]): number {
  let largest = 0;
  for (const matrix of matrices) {
    for (let i = 0; i < matrix.length; i++) {
      const size = Math.abs(matrix[i]);
      if (size > largest && size < Infinity) largest = size;
    }
  }
  return largest || 1;
}

/** A number as it is read out: three digits after the point, a true minus. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Infinity) return '∞';
  if (value === -Infinity) return '−∞';
  const text = value.toFixed(3);
  return (Number(text) === 0 ? '0.000' : text).replace('-', '−');
}

/** The same, short enough for a square. */
export function shortText(value: number): string {
  const text = value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}
