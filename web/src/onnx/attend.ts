// ONNX: the one way from the operators to engine.attention: picks a layout, names what comes back, rounds to its type.
import type { Engine } from '../engine.js';
import { invalidShape, invalidType } from '../errors.js';
import type { AttentionOptions } from '../validation/attention.js';
import { broadcastStrides } from '../validation/shapes.js';
import { readChoice, readOptions, readSignal } from '../validation/options.js';
import { describe } from '../validation/arrays.js';
import { arranged, columns, ownHeadsFirst, paddedTo, type Heads } from './heads.js';
import {
  outputTensor,
  readMaskTensor,
  type Floats,
  type OnnxFloatType,
  type OnnxTensor,
} from './tensors.js';

/** What the operators that run on an engine take beside inputs and attributes. */
export interface OperatorOptions<Output extends string> {
  /** The outputs wanted, by ONNX's names, as a node lists them. The first is always computed. */
  outputs?: readonly Output[] | undefined;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

const optionNames = new Set(['outputs', 'signal']);

/** Which outputs are wanted, and the signal. */
export function readOperatorOptions<Output extends string>(
  value: unknown,
  known: readonly Output[],
  byDefault: readonly Output[],
): { outputs: ReadonlySet<Output>; signal: AbortSignal | undefined } {
  const options = readOptions('options', value, optionNames);
  let outputs: readonly Output[] = byDefault;
  if (options.outputs !== undefined) {
    if (!Array.isArray(options.outputs)) {
      throw invalidType(
        `options.outputs: an array of names wanted, got ${describe(options.outputs)}`,
      );
    }
    outputs = options.outputs.map((name, i) => readChoice(`options.outputs[${i}]`, name, known));
  }
  return { outputs: new Set(outputs), signal: readSignal('options.signal', options.signal) };
}

/** What an adapter works out: attention's options, but for where tensors lie. */
export type AttendOptions = Omit<AttentionOptions, 'layout' | 'numHeads' | 'numKvHeads' | 'out'>;

export interface Attended {
  output: Heads;
  weights: Floats | undefined;
  scores: Floats | undefined;
}

/** engine.attention over heads; the output lies as q does. */
export async function attend(
  engine: Engine,
  q: Heads,
  k: Heads,
  v: Heads,
  options: AttendOptions,
): Promise<Attended> {
  // A layout holds for all three: rows first when they all lie so, which spares copies.
  const rowsFirst = q.rowsFirst && k.rowsFirst && v.rowsFirst;
  const result = await engine.attention(
    engineTensor(q, rowsFirst),
    engineTensor(k, rowsFirst),
    engineTensor(v, rowsFirst),
    { ...options, layout: rowsFirst ? 'blhd' : 'bhld' },
  );
  const output = { ...q, data: result.output.data, size: v.size, rowsFirst };
  return {
    output: arranged(output, q.rowsFirst),
    weights: result.weights?.data,
    scores: result.scores?.data,
  };
}

function engineTensor(source: Heads, rowsFirst: boolean): { data: Floats; shape: number[] } {
  const { data, batch, heads, rows, size } = arranged(source, rowsFirst);
  return { data, shape: rowsFirst ? [batch, rows, heads, size] : [batch, heads, rows, size] };
}

/** Sizes that must agree before the engine is asked, named as the operator names them. */
export function checkTogether(
  [qName, q]: [string, Heads],
  [kName, k]: [string, Heads],
  [vName, v]: [string, Heads],
): void {
  const wrong = (name: string, what: string, wanted: number, like: string, got: number) =>
    invalidShape(`${name}: ${what} ${wanted} like ${like} wanted, got ${got}`);
  if (k.batch !== q.batch) throw wrong(kName, 'batch', q.batch, qName, k.batch);
  if (v.batch !== q.batch) throw wrong(vName, 'batch', q.batch, qName, v.batch);
  if (k.size !== q.size) throw wrong(kName, 'head size', q.size, qName, k.size);
  if (v.heads !== k.heads) throw wrong(vName, 'heads', k.heads, kName, v.heads);
  if (v.rows !== k.rows) throw wrong(vName, 'length', k.rows, kName, v.rows);
  if (k.heads === 0 || q.heads % k.heads !== 0) {
    throw invalidShape(
      `${kName}: a number of heads that divides ${qName}'s ${q.heads} wanted, got ${k.heads}`,
    );
  }
}

/** A mask or bias, broadcast right-aligned to `sizes` = [B,H,L,S]; one shorter than S hides the keys that it lacks. */
export function readMask(
  name: string,
  value: unknown,
  sizes: [number, number, number, number],
): Pick<AttendOptions, 'mask' | 'bias'> {
  const keys = sizes[3];
  const mask = readMaskTensor(name, value);
  if (mask.kind === 'mask') {
    const padded = paddedTo(name, mask.data, mask.shape, keys, 0);
    broadcastStrides(name, padded.shape, sizes);
    return { mask: padded };
  }
  const padded = paddedTo(name, mask.data, mask.shape, keys, -Infinity);
  broadcastStrides(name, padded.shape, sizes);
  return { bias: padded };
}

/** Scores or weights [B,H,L,S], of which an operator returns the first `keys` columns. */
export function scoresTensor(
  type: OnnxFloatType,
  values: Floats | undefined,
  { batch, heads, rows }: Heads,
  allKeys: number,
  keys = allKeys,
): OnnxTensor | undefined {
  if (values === undefined) return undefined;
  const whole = { type, data: values, shape: [batch, heads, rows, allKeys] };
  const { data, shape } = keys === allKeys ? whole : columns(whole, 0, keys);
  return outputTensor(type, data, shape);
}

/** [B,L,H·D] or [B,H,L,D], as it lies. */
export function headsTensor({
  type,
  data,
  batch,
  heads,
  rows,
  size,
  rowsFirst,
}: Heads): OnnxTensor {
  const shape = rowsFirst ? [batch, rows, heads * size] : [batch, heads, rows, size];
  return outputTensor(type, data, shape);
}

/** A cache to return, [B,H,S,D], with data of its own. */
export function presentTensor(present: Heads, isOwn: boolean): OnnxTensor {
  return headsTensor(isOwn ? present : ownHeadsFirst(present));
}
