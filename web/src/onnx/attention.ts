// ONNX: the operator Attention of ai.onnx. Where it differs from engine.attention (offset 0 without a cache, masks shorter
// than the keys, -1 for an open side of a window), the difference is made up for here.
import type { Engine } from '../engine.js';
import { invalidShape, invalidValue } from '../errors.js';
import { readFinite, readInteger, readOptions } from '../validation/options.js';
import { maxSize } from '../validation/shapes.js';
import {
  attend,
  checkTogether,
  headsTensor,
  presentTensor,
  readMask,
  readOperatorOptions,
  scoresTensor,
  type AttendOptions,
  type OperatorOptions,
} from './attend.js';
import {
  checkPair,
  checkPast,
  concatenated,
  headsOfRank3,
  headsOfRank4,
  type Heads,
} from './heads.js';
import {
  checkSameType,
  readFlag,
  readFloatTensor,
  readIntegerTensor,
  readOptionalFloats,
  type FloatTensor,
  type OnnxIntegersLike,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link attention}, by ONNX's names. */
export interface AttentionInputs {
  /** `[B,H,L,D]`, or `[B,L,H·D]` with `q_num_heads`. */
  Q: OnnxTensorLike;
  /** `[B,G,S,D]`, or `[B,S,G·D]` with `kv_num_heads`. */
  K: OnnxTensorLike;
  /** `[B,G,S,Dv]`, or `[B,S,G·Dv]`. */
  V: OnnxTensorLike;
  /** Booleans (true = takes part) or floats to add, broadcast to `[B,H,L,P+S]`; a shorter last axis hides the other keys. */
  attn_mask?: OnnxTensorLike | undefined;
  /** `[B,G,P,D]`, always of rank 4. */
  past_key?: OnnxTensorLike | undefined;
  /** `[B,G,P,Dv]`. */
  past_value?: OnnxTensorLike | undefined;
  /** `[B]`: how many keys are valid. Not together with a past. */
  nonpad_kv_seqlen?: OnnxIntegersLike | undefined;
}

/** Attributes of {@link attention}, by ONNX's names. */
export interface AttentionAttributes {
  /** Default 0. Row i sees key j ≤ i + P with a past of P, j ≤ i + nonpad − L with `nonpad_kv_seqlen`, else j ≤ i. */
  is_causal?: number | boolean | undefined;
  /** G; needed for rank 3. */
  kv_num_heads?: number | undefined;
  /** H; needed for rank 3. */
  q_num_heads?: number | undefined;
  /** 0 scaled scores, 1 after the softcap, 2 with masks (−∞ where hidden), 3 weights. Default 0. */
  qk_matmul_output_mode?: number | undefined;
  /** Default 1/√D. */
  scale?: number | undefined;
  /** Default 0, none. */
  softcap?: number | undefined;
  /** 1, 10, 11 or 16 as in TensorProto. Checked, and else without effect: the softmax is always in float32. */
  softmax_precision?: number | undefined;
  /** Keys before the own position that are visible, −1 all. Default −1. */
  left_window_size?: number | undefined;
  /** Keys after the own position that are visible, −1 all. Default −1. */
  right_window_size?: number | undefined;
}

const outputNames = ['Y', 'present_key', 'present_value', 'qk_matmul_output'] as const;

/** Names of the outputs of {@link attention}. */
export type AttentionOutput = (typeof outputNames)[number];

/** Outputs of {@link attention}: `Y`, and what was asked for. */
export interface AttentionOutputs {
  /** As Q: `[B,H,L,Dv]` or `[B,L,H·Dv]`. */
  Y: OnnxTensor;
  /** `[B,G,P+S,D]`. */
  present_key?: OnnxTensor;
  /** `[B,G,P+S,Dv]`. */
  present_value?: OnnxTensor;
  /** `[B,H,L,P+S]`, of Q's type. */
  qk_matmul_output?: OnnxTensor;
}

const inputNames = new Set([
  'Q',
  'K',
  'V',
  'attn_mask',
  'past_key',
  'past_value',
  'nonpad_kv_seqlen',
]);
const attributeNames = new Set([
  'is_causal',
  'kv_num_heads',
  'q_num_heads',
  'qk_matmul_output_mode',
  'scale',
  'softcap',
  'softmax_precision',
  'left_window_size',
  'right_window_size',
]);
const stages = ['raw', 'softcapped', 'masked'] as const;
const precisions = [1, 10, 11, 16];

/**
 * ONNX Attention, opsets 23, 24 and 25 (https://onnx.ai/onnx/operators/onnx__Attention.html), as corrected in ONNX 1.23: a
 * row without a visible key is 0. Everything is computed in float32 and rounded once to the type of Q.
 *
 * @param options `outputs`: by default `Y`, and with a past `present_key` and `present_value`.
 * @throws As `engine.attention`, naming ONNX's inputs and attributes.
 */
export async function attention(
  engine: Engine,
  inputs: AttentionInputs,
  attributes?: AttentionAttributes,
  options?: OperatorOptions<AttentionOutput>,
): Promise<AttentionOutputs> {
  const given = readOptions('inputs', inputs, inputNames);
  const attrs = readOptions('attributes', attributes, attributeNames);
  const { q, k, v, past } = readTensors(given, attrs);
  const wanted = readOperatorOptions(
    options,
    outputNames,
    past === undefined ? ['Y'] : ['Y', 'present_key', 'present_value'],
  );
  const mode = readInteger('qk_matmul_output_mode', attrs.qk_matmul_output_mode ?? 0, 0, 3);
  const call: AttendOptions = {
    ...readScores(attrs),
    ...readVisibility(given, attrs, q, k, past?.rows),
    signal: wanted.signal,
  };
  if (wanted.outputs.has('qk_matmul_output')) {
    const stage = stages[mode];
    if (stage === undefined) call.returnWeights = true;
    else call.returnScores = stage;
  }
  const { output, weights, scores } = await attend(engine, q, k, v, call);

  const result: AttentionOutputs = { Y: headsTensor(output) };
  // With a past these were put together here; without one they are the caller's.
  if (wanted.outputs.has('present_key')) result.present_key = presentTensor(k, past !== undefined);
  if (wanted.outputs.has('present_value'))
    result.present_value = presentTensor(v, past !== undefined);
  const matrix = scoresTensor(q.type, weights ?? scores, q, k.rows);
  if (matrix !== undefined) result.qk_matmul_output = matrix;
  return result;
}

function readTensors(
  given: Record<string, unknown>,
  attrs: Record<string, unknown>,
): { q: Heads; k: Heads; v: Heads; past: Heads | undefined } {
  const tensors = {
    Q: readFloatTensor('Q', given.Q),
    K: readFloatTensor('K', given.K),
    V: readFloatTensor('V', given.V),
  };
  checkSameType('K', tensors.K, 'Q', tensors.Q);
  const rank = tensors.Q.shape.length;
  if (rank !== 3 && rank !== 4) {
    throw invalidShape(`Q: a tensor of rank 3 or 4 wanted, got shape [${tensors.Q.shape}]`);
  }
  const q = view('Q', tensors.Q, rank, 'q_num_heads', attrs.q_num_heads);
  let k = view('K', tensors.K, rank, 'kv_num_heads', attrs.kv_num_heads);
  let v = view('V', tensors.V, rank, 'kv_num_heads', attrs.kv_num_heads);
  checkTogether(['Q', q], ['K', k], ['V', v]);

  checkPair('past_key', given.past_key, 'past_value', given.past_value);
  const pastKey = readOptionalFloats('past_key', given.past_key);
  const pastValue = readOptionalFloats('past_value', given.past_value);
  if (pastKey === undefined || pastValue === undefined) return { q, k, v, past: undefined };
  checkSameType('past_key', pastKey, 'K', tensors.K);
  checkSameType('past_value', pastValue, 'V', tensors.V);
  const past = headsOfRank4('past_key', pastKey);
  const pastV = headsOfRank4('past_value', pastValue);
  checkPast('past_key', past, 'K', k);
  checkPast('past_value', pastV, 'V', v);
  if (past.rows !== pastV.rows) {
    throw invalidShape(`past_value: length ${past.rows} like past_key wanted, got ${pastV.rows}`);
  }
  k = concatenated(past, k);
  v = concatenated(pastV, v);
  return { q, k, v, past };
}

function view(
  name: string,
  tensor: FloatTensor,
  rank: number,
  countName: string,
  count: unknown,
): Heads {
  if (rank === 3) {
    if (count === undefined) {
      throw invalidShape(`${countName}: needed for inputs of rank 3, Q, K and V`);
    }
    return headsOfRank3(name, tensor, countName, readInteger(countName, count, 1, maxSize));
  }
  const heads = headsOfRank4(name, tensor);
  if (count !== undefined && heads.heads !== readInteger(countName, count, 1, maxSize)) {
    throw invalidShape(
      `${name}: ${countName} = ${count} heads wanted, got shape [${tensor.shape}]`,
    );
  }
  return heads;
}

function readScores(attrs: Record<string, unknown>): AttendOptions {
  const { scale, softcap, softmax_precision: precision } = attrs;
  const call: AttendOptions = {};
  if (scale !== undefined) call.scale = readFinite('scale', scale);
  if (softcap !== undefined) call.softcap = readFinite('softcap', softcap);
  if (
    precision !== undefined &&
    !precisions.includes(readInteger('softmax_precision', precision, 1, 16))
  ) {
    throw invalidValue(
      `softmax_precision: 1 (float32), 10 (float16), 11 (float64) or 16 (bfloat16) wanted, got ${precision}`,
    );
  }
  return call;
}

function readVisibility(
  given: Record<string, unknown>,
  attrs: Record<string, unknown>,
  q: Heads,
  k: Heads,
  pastRows: number | undefined,
): AttendOptions {
  const call: AttendOptions = { causal: readFlag('is_causal', attrs.is_causal) };
  if (given.attn_mask !== undefined) {
    Object.assign(call, readMask('attn_mask', given.attn_mask, [q.batch, q.heads, q.rows, k.rows]));
  }
  call.window = [
    readSide('left_window_size', attrs.left_window_size),
    readSide('right_window_size', attrs.right_window_size),
  ];
  if (given.nonpad_kv_seqlen === undefined) {
    call.causalOffset = pastRows ?? 0;
    return call;
  }
  if (pastRows !== undefined) {
    throw invalidValue('nonpad_kv_seqlen: not together with past_key and past_value');
  }
  const { data, shape } = readIntegerTensor('nonpad_kv_seqlen', given.nonpad_kv_seqlen);
  if (data.length !== q.batch || shape.length > 1) {
    throw invalidShape(`nonpad_kv_seqlen: shape [${q.batch}] ([B]) wanted, got [${shape}]`);
  }
  data.forEach((length, b) => readInteger(`nonpad_kv_seqlen[${b}]`, length, 0, k.rows));
  // The default offset, kvLength − L, is ONNX's with this input.
  call.kvLengths = data;
  return call;
}

function readSide(name: string, value: unknown): number {
  const size = value === undefined ? -1 : readInteger(name, value, -1, maxSize);
  return size === -1 ? Infinity : size;
}
