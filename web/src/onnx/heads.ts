// ONNX: tensors seen as heads, [B,H,L,D] or [B,L,H,D], and what the operators do to them around attention: unpacking, biases
// of projections, the past before the present.
import { invalidShape, invalidValue } from '../errors.js';
import { product } from '../validation/shapes.js';
import { zerosLike, type Floats, type FloatTensor, type OnnxFloatType } from './tensors.js';

/** `rows` of `heads` of `size` numbers for each batch. `rowsFirst`: the data is [B,L,H,D], which is [B,L,H·D] as well. */
export interface Heads {
  type: OnnxFloatType;
  data: Floats;
  batch: number;
  heads: number;
  rows: number;
  size: number;
  rowsFirst: boolean;
}

/** [B,H,L,D]. */
export function headsOfRank4(name: string, { type, data, shape }: FloatTensor): Heads {
  if (shape.length !== 4) {
    throw invalidShape(`${name}: rank 4, [B,H,L,D], wanted, got shape [${shape}]`);
  }
  const [batch, heads, rows, size] = shape as [number, number, number, number];
  return { type, data, batch, heads, rows, size, rowsFirst: false };
}

/** [B,L,H·D] with this many heads. */
export function headsOfRank3(
  name: string,
  { type, data, shape }: FloatTensor,
  countName: string,
  heads: number,
): Heads {
  if (shape.length !== 3) {
    throw invalidShape(`${name}: rank 3, [B,L,H·D], wanted, got shape [${shape}]`);
  }
  const [batch, rows, width] = shape as [number, number, number];
  if (width % heads !== 0) {
    throw invalidShape(
      `${name}: a last axis that ${countName} = ${heads} divides wanted, got shape [${shape}]`,
    );
  }
  return { type, data, batch, heads, rows, size: width / heads, rowsFirst: true };
}

/** Where the row of a head begins. */
export function rowStart(
  { heads, rows, size, rowsFirst }: Heads,
  b: number,
  h: number,
  i: number,
): number {
  return (rowsFirst ? (b * rows + i) * heads + h : (b * heads + h) * rows + i) * size;
}

/** The same as [B,H,L,D] or as [B,L,H,D]; a copy when that is not how it lies. */
export function arranged(source: Heads, rowsFirst: boolean): Heads {
  if (source.rowsFirst === rowsFirst) return source;
  const { batch, heads, rows, size } = source;
  const target = { ...source, data: zerosLike(source.data, source.data.length), rowsFirst };
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < rows; i++) {
        const from = rowStart(source, b, h, i);
        target.data.set(source.data.subarray(from, from + size), rowStart(target, b, h, i));
      }
    }
  }
  return target;
}

/** [B,H,L,D] that is nobody else's. */
export function ownHeadsFirst(source: Heads): Heads {
  return source.rowsFirst ? arranged(source, false) : { ...source, data: source.data.slice() };
}

/** Rows of the past before those of the present, as [B,H,S,D]. */
export function concatenated(past: Heads, present: Heads): Heads {
  const after = arranged(present, false);
  const before = arranged(past, false);
  const { batch, heads, size } = after;
  const rows = before.rows + after.rows;
  const data = zerosLike(after.data, batch * heads * rows * size);
  const [pastLength, newLength] = [before.rows * size, after.rows * size];
  for (let head = 0; head < batch * heads; head++) {
    const at = head * rows * size;
    data.set(before.data.subarray(head * pastLength, (head + 1) * pastLength), at);
    data.set(after.data.subarray(head * newLength, (head + 1) * newLength), at + pastLength);
  }
  return { ...after, data, rows };
}

/** The past must be what the present is, but for its length. */
export function checkPast(name: string, past: Heads, presentName: string, present: Heads): void {
  const wanted = [present.batch, present.heads, present.size];
  const got = [past.batch, past.heads, past.size];
  if (wanted.some((value, i) => value !== got[i])) {
    throw invalidShape(
      `${name}: [B,H,P,D] with B, H, D = ${wanted.join(', ')} like ${presentName} wanted, got ${got.join(', ')}`,
    );
  }
}

/** Both or neither. */
export function checkPair(
  firstName: string,
  first: unknown,
  secondName: string,
  second: unknown,
): void {
  if ((first === undefined) !== (second === undefined)) {
    const [given, missing] =
      first === undefined ? [secondName, firstName] : [firstName, secondName];
    throw invalidValue(`${missing}: needed because ${given} is given`);
  }
}

/** Columns `from`… of the last axis, `count` of them. */
export function columns(
  { type, data, shape }: FloatTensor,
  from: number,
  count: number,
): FloatTensor {
  const width = shape[shape.length - 1] as number;
  const rows = product(shape.slice(0, -1));
  const out = zerosLike(data, rows * count);
  for (let r = 0; r < rows; r++) {
    out.set(data.subarray(r * width + from, r * width + from + count), r * count);
  }
  return { type, data: out, shape: [...shape.slice(0, -1), count] };
}

/** One of several tensors that lie interleaved, [B,L,H,parts,D]: the one numbered `part`. */
export function unpacked(name: string, packed: FloatTensor, part: number): Heads {
  const { type, data, shape } = packed;
  const [batch, rows, heads, parts, size] = shape as [number, number, number, number, number];
  if (shape.length !== 5) {
    throw invalidShape(`${name}: rank 5, [B,L,H,parts,D], wanted, got shape [${shape}]`);
  }
  const out = zerosLike(data, batch * rows * heads * size);
  for (let row = 0; row < batch * rows * heads; row++) {
    const from = (row * parts + part) * size;
    out.set(data.subarray(from, from + size), row * size);
  }
  return { type, data: out, batch, heads, rows, size, rowsFirst: true };
}

/** Adds to each row of each head its part of a vector [H·D]. */
export function withBias(source: Heads, bias: Floats): Heads {
  const { batch, heads, rows, size } = source;
  const data = source.data.slice();
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < rows; i++) {
        const at = rowStart(source, b, h, i);
        for (let d = 0; d < size; d++) {
          data[at + d] = (data[at + d] as number) + (bias[h * size + d] as number);
        }
      }
    }
  }
  return { ...source, data };
}

/** The last axis grown to `width`, filled up; a length above it is an error. */
export function paddedTo<A extends Floats | Uint8Array>(
  name: string,
  data: A,
  shape: readonly number[],
  width: number,
  filler: number,
): { data: A; shape: number[] } {
  const old = shape.length === 0 ? 1 : (shape[shape.length - 1] as number);
  if (old === width) return { data, shape: [...shape] };
  if (old > width) {
    throw invalidShape(
      `${name}: a last axis of at most ${width} keys wanted, got shape [${shape}]`,
    );
  }
  const leading = shape.slice(0, -1);
  const rows = product(leading);
  const out = new (data.constructor as new (length: number) => A)(rows * width).fill(filler) as A;
  for (let r = 0; r < rows; r++) out.set(data.subarray(r * old, (r + 1) * old), r * width);
  return { data: out, shape: [...leading, width] };
}
