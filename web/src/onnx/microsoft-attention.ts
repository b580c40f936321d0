// ONNX: the operator Attention of com.microsoft: one input, one product that makes q, k and v, and self-attention.
import type { Engine } from '../engine.js';
import { invalidShape, unsupported } from '../errors.js';
import { readFinite, readInteger, readOptions } from '../validation/options.js';
import { checkShape, maxSize } from '../validation/shapes.js';
import {
  attend,
  checkTogether,
  headsTensor,
  readMask,
  readOperatorOptions,
  type AttendOptions,
  type OperatorOptions,
} from './attend.js';
import { arranged, columns, concatenated, headsOfRank3, type Heads } from './heads.js';
import { readKeyMask } from './key-mask.js';
import {
  checkSameType,
  outputTensor,
  readFlag,
  readFloatTensor,
  readIntegerTensor,
  readOptionalFloats,
  zerosLike,
  type FloatTensor,
  type OnnxIntegersLike,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link microsoftAttention}, by ONNX Runtime's names. */
export interface MicrosoftAttentionInputs {
  /** `[B,L,E]`. */
  input: OnnxTensorLike;
  /** `[E, H·D + H·D + H·Dv]`: the projections of q, k and v side by side. */
  weights: OnnxTensorLike;
  /** `[H·D + H·D + H·Dv]`. */
  bias?: OnnxTensorLike | undefined;
  /** `[B]` or `[3·B+2]`: valid keys; `[2·B]`: their ends, then their beginnings; `[B,P+L]` or `[B,L,P+L]`: 0 hides. */
  mask_index?: OnnxIntegersLike | undefined;
  /** `[2,B,H,P,D]`: keys, then values. */
  past?: OnnxTensorLike | undefined;
  /** `[B or 1, H or 1, L, P+L]`. */
  attention_bias?: OnnxTensorLike | undefined;
}

/** Attributes of {@link microsoftAttention}. */
export interface MicrosoftAttentionAttributes {
  num_heads: number;
  /** Default 0. */
  unidirectional?: number | boolean | undefined;
  /** `[H·D, H·D, H·Dv]`. Default: thirds of the weights' width. */
  qkv_hidden_sizes?: readonly number[] | undefined;
  /** Default 1/√D, which 0 also means. */
  scale?: number | undefined;
  /** Checked, and else without effect. */
  mask_filter_value?: number | undefined;
  /** Only 0. */
  do_rotary?: number | undefined;
  /** Only 0. */
  past_present_share_buffer?: number | undefined;
}

const outputNames = ['output', 'present'] as const;

/** Names of the outputs of {@link microsoftAttention}. */
export type MicrosoftAttentionOutput = (typeof outputNames)[number];

/** Outputs of {@link microsoftAttention}. */
export interface MicrosoftAttentionOutputs {
  /** `[B,L,H·Dv]`. */
  output: OnnxTensor;
  /** `[2,B,H,P+L,D]`; needs Dv = D. */
  present?: OnnxTensor;
}

const inputNames = new Set(['input', 'weights', 'bias', 'mask_index', 'past', 'attention_bias']);
const attributeNames = new Set([
  ...['num_heads', 'unidirectional', 'qkv_hidden_sizes', 'scale', 'mask_filter_value'],
  ...['do_rotary', 'past_present_share_buffer'],
]);

/**
 * ONNX Runtime's Attention (com.microsoft): self-attention from weights packed in one matrix.
 *
 * @param options `outputs`: by default `output`, and with a past `present`.
 * @throws As `engine.attention`, naming ONNX Runtime's inputs and attributes; HeadwiseError `UNSUPPORTED` for rotation inside
 * the operator and for shared buffers.
 */
export async function microsoftAttention(
  engine: Engine,
  inputs: MicrosoftAttentionInputs,
  attributes: MicrosoftAttentionAttributes,
  options?: OperatorOptions<MicrosoftAttentionOutput>,
): Promise<MicrosoftAttentionOutputs> {
  const given = readOptions('inputs', inputs, inputNames);
  const attrs = readOptions('attributes', attributes, attributeNames);
  for (const name of ['do_rotary', 'past_present_share_buffer']) {
    if (readFlag(name, attrs[name])) throw unsupported(`${name}: only 0 is supported`);
  }
  const numHeads = readInteger('num_heads', attrs.num_heads, 1, maxSize);
  const input = readFloatTensor('input', given.input);
  const weights = readFloatTensor('weights', given.weights);
  const bias = readOptionalFloats('bias', given.bias);
  const past = readOptionalFloats('past', given.past);
  if (input.shape.length !== 3)
    throw invalidShape(`input: rank 3, [B,L,E], wanted, got shape [${input.shape}]`);
  const [batch, rows, embedDim] = input.shape as [number, number, number];
  if (weights.shape.length !== 2 || weights.shape[0] !== embedDim) {
    throw invalidShape(`weights: [E, …] with E = ${embedDim} wanted, got shape [${weights.shape}]`);
  }
  checkSameType('weights', weights, 'input', input);
  if (bias !== undefined) checkShape('bias', bias.shape, [weights.shape[1] as number], '[…]');
  const widths = readWidths(attrs.qkv_hidden_sizes, weights.shape[1] as number);
  const call: AttendOptions = { causal: readFlag('unidirectional', attrs.unidirectional) };
  const scale = readFinite('scale', attrs.scale ?? 0);
  if (scale !== 0) call.scale = scale;
  if (attrs.mask_filter_value !== undefined)
    readFinite('mask_filter_value', attrs.mask_filter_value);
  const wanted = readOperatorOptions(
    options,
    outputNames,
    past === undefined ? (['output'] as const) : outputNames,
  );
  call.signal = wanted.signal;

  const shapes = headShapes(input, widths, numHeads);
  const before = past === undefined ? undefined : readPast(past, input, shapes);
  const pastRows = before?.k.rows ?? 0;
  const keys = pastRows + rows;
  call.causalOffset = pastRows;
  const empty: Heads = { ...shapes.k, rows };
  if (given.mask_index !== undefined) {
    Object.assign(call, readKeyMask('mask_index', given.mask_index, empty, keys, keys, true));
  }
  if (given.attention_bias !== undefined) {
    const sizes: [number, number, number, number] = [batch, numHeads, rows, keys];
    Object.assign(call, readMask('attention_bias', given.attention_bias, sizes));
  }
  if (wanted.outputs.has('present') && shapes.k.size !== shapes.v.size) {
    throw invalidShape('present: needs one head size, as qkv_hidden_sizes says it is not');
  }

  const projected = await engine.linear(input, weights, bias);
  const all: FloatTensor = { type: input.type, data: projected.data, shape: [...projected.shape] };
  const part = (i: number): Heads => {
    const from = widths.slice(0, i).reduce((sum, width) => sum + width, 0);
    return headsOfRank3('weights', columns(all, from, widths[i] as number), 'num_heads', numHeads);
  };
  const q = part(0);
  let k = part(1);
  let v = part(2);
  if (before !== undefined) [k, v] = [concatenated(before.k, k), concatenated(before.v, v)];
  const { output } = await attend(engine, q, k, v, call);
  const result: MicrosoftAttentionOutputs = { output: headsTensor(output) };
  if (wanted.outputs.has('present')) result.present = stacked(k, v);
  return result;
}

function readWidths(value: unknown, whole: number): [number, number, number] {
  if (value === undefined) {
    if (whole % 3 !== 0) throw invalidShape(`weights: a width that 3 divides wanted, got ${whole}`);
    return [whole / 3, whole / 3, whole / 3];
  }
  const { data } = readIntegerTensor('qkv_hidden_sizes', value);
  const [a, b, c] = data as unknown as [number, number, number];
  if (data.length !== 3 || a + b + c !== whole || Math.min(a, b, c) < 0) {
    throw invalidShape(
      `qkv_hidden_sizes: three widths with the sum ${whole} of weights wanted, got [${data}]`,
    );
  }
  return [a, b, c];
}

// q, k and v without their data: sizes are checked before the product is made.
function headShapes(
  { type, shape }: FloatTensor,
  widths: [number, number, number],
  numHeads: number,
): { k: Heads; v: Heads } {
  const [q, k, v] = widths.map((width) =>
    headsOfRank3(
      'weights',
      { type, data: new Float32Array(0), shape: [shape[0] as number, shape[1] as number, width] },
      'num_heads',
      numHeads,
    ),
  ) as [Heads, Heads, Heads];
  checkTogether(['q of weights', q], ['k of weights', k], ['v of weights', v]);
  return { k, v };
}

function readPast(
  past: FloatTensor,
  input: FloatTensor,
  { k, v }: { k: Heads; v: Heads },
): { k: Heads; v: Heads } {
  checkSameType('past', past, 'input', input);
  const { batch, heads, size } = k;
  const rows = past.shape[3] ?? 0;
  if (k.size !== v.size) throw invalidShape('past: needs one head size for keys and values');
  checkShape('past', past.shape, [2, batch, heads, rows, size], '[2,B,H,P,D]');
  const half = batch * heads * rows * size;
  const one = (from: number): Heads => {
    const data = past.data.subarray(from, from + half);
    return { type: past.type, data, batch, heads, rows, size, rowsFirst: false };
  };
  return { k: one(0), v: one(half) };
}

function stacked(k: Heads, v: Heads): OnnxTensor {
  const [keys, values] = [arranged(k, false), arranged(v, false)];
  const data = zerosLike(keys.data, 2 * keys.data.length);
  data.set(keys.data);
  data.set(values.data, keys.data.length);
  return outputTensor(k.type, data, [2, k.batch, k.heads, k.rows, k.size]);
}
