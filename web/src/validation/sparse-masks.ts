// Validation: masks of bits, and block-sparse ones.
import type { BitMask } from '../tensor-types.js';
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { AttentionSettings, BroadcastStrides } from '../request.js';
import { describe, kindOf } from './arrays.js';
import { fixed } from './fixed.js';
import { readInteger, readOptions } from './options.js';
import {
  broadcastStrides,
  checkShape,
  maxSize,
  product,
  readAnyIntegers,
  readShape,
} from './shapes.js';

const bitNames = new Set(['bits', 'shape']);
const blockNames = new Set(['size', 'rows', 'columns']);

export function isBitMask(value: unknown): value is BitMask {
  return typeof value === 'object' && value !== null && 'bits' in value;
}

export function readBitMask(
  value: BitMask,
  target: [number, number, number, number],
): NonNullable<AttentionSettings['mask']> {
  const { bits } = readOptions('mask', value, bitNames);
  if (!ArrayBuffer.isView(bits) || kindOf(bits) !== 'Uint8Array')
    throw invalidType(`mask.bits: a Uint8Array wanted, got ${describe(bits)}`);
  const data = fixed('mask.bits', bits as Uint8Array, Uint8Array);
  const shape = readShape('mask.shape', value.shape);
  const strides = broadcastStrides('mask', shape, target);
  const size = shape.length === 0 ? 1 : (shape[shape.length - 1] as number);
  const rowBytes = Math.ceil(size / 8);
  const wanted = product(shape.slice(0, -1)) * rowBytes;
  if (data.length !== wanted) {
    throw invalidShape(
      `mask.bits: ${wanted} bytes, ${rowBytes} a row of shape [${shape}], wanted, got ${data.length}`,
    );
  }
  // From elements to bytes: axes left of the last count whole rows.
  const inBytes = strides.map((stride, axis) =>
    axis === 3 || size === 0 ? stride : (stride / size) * rowBytes,
  ) as BroadcastStrides;
  return { data, strides: inBytes, bits: true };
}

export function readBlockMask(
  value: unknown,
  queries: number,
  keys: number,
): NonNullable<AttentionSettings['blockMask']> {
  const options = readOptions('blockMask', value, blockNames);
  const size = readInteger('blockMask.size', options.size, 1, maxSize);
  const rows = readAnyIntegers('blockMask.rows', options.rows);
  const columns = readAnyIntegers('blockMask.columns', options.columns);
  const count = Math.ceil(queries / size);
  checkShape('blockMask.rows', rows.shape, [count + 1], '⌈L/size⌉ + 1');
  if (columns.shape.length !== 1)
    throw invalidShape(`blockMask.columns: a flat array wanted, got shape [${columns.shape}]`);
  const most = Math.ceil(keys / size) - 1;
  let at = readInteger('blockMask.rows[0]', rows.data[0], 0, 0);
  for (let row = 0; row < count; row++) {
    const end = readInteger(
      `blockMask.rows[${row + 1}]`,
      rows.data[row + 1],
      at,
      columns.data.length,
    );
    for (let before = -1; at < end; at++) {
      const column = readInteger(`blockMask.columns[${at}]`, columns.data[at], 0, most);
      if (column <= before) {
        throw invalidValue(
          `blockMask.columns[${at}]: ascending columns wanted within a row, got ${column} after ${before}`,
        );
      }
      before = column;
    }
  }
  if (at !== columns.data.length) {
    throw invalidShape(
      `blockMask.rows: ${columns.data.length}, the number of columns, wanted at the end, got ${at}`,
    );
  }
  return { size, rows: rows.data, columns: columns.data };
}
