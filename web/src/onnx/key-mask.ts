// ONNX: the masks of ONNX Runtime's operators, whose meaning their shape tells.
import { invalidShape } from '../errors.js';
import { readInteger } from '../validation/options.js';
import type { AttendOptions } from './attend.js';
import type { Heads } from './heads.js';
import { readIntegerTensor } from './tensors.js';

/**
 * `[B]` or `[3·B+2]`, of which the first B count: valid keys. `[B,S]`, `[B,P+S]`, `[B,L,P+S]`: 0 hides. `[2·B]`, where
 * `ends` says so: ends, then beginnings, of the valid keys. A mask over the S new keys alone leaves the past visible.
 */
export function readKeyMask(
  name: string,
  value: unknown,
  q: Heads,
  keys: number,
  newKeys: number,
  ends = false,
): Pick<AttendOptions, 'mask' | 'kvLengths'> {
  const { data, shape } = readIntegerTensor(name, value);
  const { batch, rows } = q;
  if (shape.length === 1) {
    const [length] = shape;
    if (ends && length === 2 * batch) return { mask: between(name, data, batch, keys) };
    if (length === batch || length === 3 * batch + 2) {
      const lengths = data.slice(0, batch);
      lengths.forEach((end, b) => readInteger(`${name}[${b}]`, end, 0, keys));
      return { kvLengths: lengths };
    }
  }
  const last = shape[shape.length - 1];
  if (shape.length === 2 && shape[0] === batch && (last === keys || last === newKeys)) {
    const width = last;
    const mask = new Uint8Array(batch * keys).fill(1);
    for (let b = 0; b < batch; b++)
      for (let j = 0; j < width; j++)
        mask[b * keys + keys - width + j] = data[b * width + j] === 0 ? 0 : 1;
    return { mask: { data: mask, shape: [batch, 1, 1, keys] } };
  }
  if (shape.length === 3 && shape[0] === batch && shape[1] === rows && last === keys) {
    const mask = Uint8Array.from(data, (x) => (x === 0 ? 0 : 1));
    return { mask: { data: mask, shape: [batch, 1, rows, keys] } };
  }
  throw invalidShape(
    `${name}: [B], [3·B+2], [B,S], [B,P+S] or [B,L,P+S] with B = ${batch}, L = ${rows}, S = ${newKeys}, P+S = ${keys} wanted, got [${shape}]`,
  );
}

function between(
  name: string,
  data: Int32Array,
  batch: number,
  keys: number,
): { data: Uint8Array; shape: number[] } {
  data.forEach((edge, i) => readInteger(`${name}[${i}]`, edge, 0, keys));
  const mask = new Uint8Array(batch * keys);
  for (let b = 0; b < batch; b++)
    mask.fill(1, b * keys + (data[batch + b] as number), b * keys + (data[b] as number));
  return { data: mask, shape: [batch, 1, 1, keys] };
}
