// Validation: tensors of rank 2 to 4 as batches, heads, rows and elements, with their strides.
import { invalidShape } from '../errors.js';
import type { Strides } from '../request.js';
import { readChoice } from './options.js';
import { maxSize } from './shapes.js';

/** A tensor seen as [batch, heads, rows, size]. */
export interface View {
  batch: number;
  heads: number;
  rows: number;
  size: number;
  strides: Strides;
}

const layouts = ['bhld', 'blhd'] as const;

/** Whether tensors of rank 4 are [B,L,H,D]. */
export function readLayout(value: unknown): boolean {
  return value !== undefined && readChoice('layout', value, layouts) === 'blhd';
}

export function viewOf(
  name: string,
  shape: readonly number[],
  blhd: boolean,
  headsName: string,
  heads: number | undefined,
): View {
  const { 0: a, 1: b, 2: c, 3: d } = shape as [number, number, number, number];
  const rank = shape.length;
  if (rank === 3 && c % (heads as number) !== 0) {
    throw invalidShape(
      `${name}: a last axis that ${headsName} = ${heads} divides wanted, got shape [${shape}]`,
    );
  }
  const own = rank === 4 ? (blhd ? c : b) : rank === 3 ? (heads as number) : 1;
  if (heads !== undefined && own !== heads) {
    throw invalidShape(
      `${name}: ${headsName} = ${heads} heads wanted, shape [${shape}] has ${own}`,
    );
  }
  const batch = rank === 2 ? 1 : a;
  const rows = rank === 2 ? a : rank === 3 || blhd ? b : c;
  const size = rank === 2 ? b : rank === 3 ? c / own : d;
  const sequenceFirst = rank === 3 || (rank === 4 && blhd);
  const strides: Strides = sequenceFirst
    ? [rows * own * size, size, own * size]
    : [own * rows * size, rows * size, size];
  if (strides[0] > maxSize || strides[1] > maxSize || strides[2] > maxSize) {
    throw invalidShape(`${name}: shape [${shape}] has strides above ${maxSize}`);
  }
  return { batch, heads: own, rows, size, strides };
}
