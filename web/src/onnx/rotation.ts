// ONNX: rotary embedding with given tables, as a pure function: pairs of a row's first numbers are turned by the angle whose
// cosine and sine the tables hold. The tables are taken as they are: cos² + sin² need not be 1.
import { invalidShape, invalidValue } from '../errors.js';
import { rowStart, type Heads } from './heads.js';
import type { FloatTensor } from './tensors.js';

/** Tables of cosines and sines, row by row. */
export interface RotaryTables {
  cos: FloatTensor;
  sin: FloatTensor;
  /** Pairs that turn: half the numbers that do. */
  pairs: number;
  /** The row of the tables for a position in a batch. */
  rowOf: (batch: number, position: number) => number;
  /** Pairs are neighbours (2p, 2p+1) rather than halves (p, p + pairs). */
  interleaved: boolean;
}

/** Rows turned, in a copy: x₁·cos − x₂·sin and x₁·sin + x₂·cos for each pair; what is past the pairs stays. */
export function rotated(source: Heads, tables: RotaryTables): Heads {
  const { batch, heads, rows } = source;
  const { cos, sin, pairs, rowOf, interleaved } = tables;
  const from = source.data;
  const to = from.slice();
  const [step, apart] = interleaved ? [2, 1] : [1, pairs];
  for (let b = 0; b < batch; b++) {
    for (let i = 0; i < rows; i++) {
      const table = rowOf(b, i) * pairs;
      for (let h = 0; h < heads; h++) {
        const start = rowStart(source, b, h, i);
        for (let p = 0; p < pairs; p++) {
          const first = start + p * step;
          const x1 = from[first] as number;
          const x2 = from[first + apart] as number;
          const c = cos.data[table + p] as number;
          const s = sin.data[table + p] as number;
          to[first] = x1 * c - x2 * s;
          to[first + apart] = x1 * s + x2 * c;
        }
      }
    }
  }
  return { ...source, data: to };
}

/** How many numbers of a row of `size` turn; 0 and undefined mean all. */
export function checkRotarySize(name: string, turning: number, size: number): number {
  const numbers = turning === 0 ? size : turning;
  if (numbers % 2 !== 0 || numbers > size) {
    throw invalidValue(
      `${name}: an even number up to the head size ${size} wanted, got ${numbers}`,
    );
  }
  return numbers;
}

/** Both tables have this width and one shape. */
export function checkTables(cos: FloatTensor, sin: FloatTensor, rank: number, pairs: number): void {
  for (const [name, { shape }] of [
    ['cos_cache', cos],
    ['sin_cache', sin],
  ] as const) {
    if (shape.length !== rank || shape[rank - 1] !== pairs) {
      throw invalidShape(
        `${name}: rank ${rank} with a last axis of ${pairs} wanted, got shape [${shape}]`,
      );
    }
  }
  if (cos.shape.some((size, axis) => size !== sin.shape[axis])) {
    throw invalidShape(`sin_cache: shape [${cos.shape}] like cos_cache wanted, got [${sin.shape}]`);
  }
}

/** The positions must be rows of tables [positions, pairs]. */
export function checkPositions(name: string, positions: ArrayLike<number>, rows: number): void {
  for (let i = 0; i < positions.length; i++) {
    const position = positions[i] as number;
    if (position < 0 || position >= rows) {
      throw invalidValue(
        `${name}[${i}]: a row of cos_cache, 0 to ${rows - 1}, wanted, got ${position}`,
      );
    }
  }
}
