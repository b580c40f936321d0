// ONNX: the operator MultiHeadAttention of com.microsoft: projected q, k and v, apart or packed, with the projections' biases.
import type { Engine } from '../engine.js';
import { invalidShape, invalidType, invalidValue, unsupported } from '../errors.js';
import { readFinite, readInteger, readOptions } from '../validation/options.js';
import { checkShape, maxSize } from '../validation/shapes.js';
import {
  attend,
  checkTogether,
  headsTensor,
  presentTensor,
  readMask,
  readOperatorOptions,
  type AttendOptions,
  type OperatorOptions,
} from './attend.js';
import {
  checkPair,
  checkPast,
  concatenated,
  headsOfRank3,
  headsOfRank4,
  unpacked,
  withBias,
  type Heads,
} from './heads.js';
import { readKeyMask } from './key-mask.js';
import {
  checkSameType,
  readFlag,
  readFloatTensor,
  readOptionalFloats,
  type FloatTensor,
  type OnnxIntegersLike,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link multiHeadAttention}, by ONNX Runtime's names. */
export interface MultiHeadAttentionInputs {
  /** `[B,L,H·D]`, or q, k and v packed, `[B,L,H,3,D]`, without key and value. */
  query: OnnxTensorLike;
  /** `[B,S,H·D]`, or `[B,H,S,D]`, or k and v packed, `[B,S,H,2,D]`, without value. */
  key?: OnnxTensorLike | undefined;
  /** `[B,S,H·Dv]` or `[B,H,S,Dv]`. */
  value?: OnnxTensorLike | undefined;
  /** `[H·D + H·D + H·Dv]`, added to query, key and value; not to keys and values of rank 4, which come with theirs. */
  bias?: OnnxTensorLike | undefined;
  /** `[B]` or `[3·B+2]` (it begins with `[B]`): valid keys; `[B,S]`, `[B,P+S]` or `[B,L,P+S]`: 0 hides. */
  key_padding_mask?: OnnxIntegersLike | undefined;
  /** `[B or 1, H or 1, L, P+S]`. */
  attention_bias?: OnnxTensorLike | undefined;
  /** `[B,H,P,D]`. */
  past_key?: OnnxTensorLike | undefined;
  /** `[B,H,P,Dv]`. */
  past_value?: OnnxTensorLike | undefined;
}

/** Attributes of {@link multiHeadAttention}. */
export interface MultiHeadAttentionAttributes {
  num_heads: number;
  /** Default 1/√D, which 0 also means. */
  scale?: number | undefined;
  /** Row i sees key j ≤ i + P. Default 0. */
  unidirectional?: number | boolean | undefined;
  /** Checked, and else without effect: what a mask hides is hidden, whatever ONNX Runtime would add. */
  mask_filter_value?: number | undefined;
}

const outputNames = ['output', 'present_key', 'present_value'] as const;

/** Names of the outputs of {@link multiHeadAttention}. */
export type MultiHeadAttentionOutput = (typeof outputNames)[number];

/** Outputs of {@link multiHeadAttention}: `output`, and what was asked for. */
export interface MultiHeadAttentionOutputs {
  /** `[B,L,H·Dv]`. */
  output: OnnxTensor;
  /** `[B,H,P+S,D]`, with the bias. */
  present_key?: OnnxTensor;
  /** `[B,H,P+S,Dv]`, with the bias. */
  present_value?: OnnxTensor;
}

const known = ['query', 'key', 'value', 'bias', 'key_padding_mask', 'attention_bias'];
const inputNames = new Set([
  ...known,
  'past_key',
  'past_value',
  'past_sequence_length',
  'cache_indirection',
]);
const attributeNames = new Set(['num_heads', 'scale', 'unidirectional', 'mask_filter_value']);

/**
 * ONNX Runtime's MultiHeadAttention (com.microsoft). A row whose keys are all hidden is 0 (ONNX Runtime adds −10000 to each
 * and returns what no mask would give).
 *
 * @param options `outputs`: by default `output`, and with a past `present_key` and `present_value`.
 * @throws As `engine.attention`, naming ONNX Runtime's inputs and attributes; HeadwiseError `UNSUPPORTED` for the beam
 * search's inputs `past_sequence_length` and `cache_indirection`.
 */
export async function multiHeadAttention(
  engine: Engine,
  inputs: MultiHeadAttentionInputs,
  attributes: MultiHeadAttentionAttributes,
  options?: OperatorOptions<MultiHeadAttentionOutput>,
): Promise<MultiHeadAttentionOutputs> {
  const given = readOptions('inputs', inputs, inputNames);
  const attrs = readOptions('attributes', attributes, attributeNames);
  for (const name of ['past_sequence_length', 'cache_indirection']) {
    if (given[name] !== undefined) throw unsupported(`${name}: this input is not supported`);
  }
  const numHeads = readInteger('num_heads', attrs.num_heads, 1, maxSize);
  const projected = readProjections(given, numHeads);
  const { q } = projected;
  let { k, v } = projected;
  checkTogether(['query', q], ['key', k], ['value', v]);

  checkPair('past_key', given.past_key, 'past_value', given.past_value);
  const hasPast = given.past_key !== undefined;
  const newKeys = k.rows;
  if (hasPast) {
    const past = {
      k: readPast('past_key', given.past_key, k),
      v: readPast('past_value', given.past_value, v),
    };
    if (past.k.rows !== past.v.rows)
      throw invalidShape(
        `past_value: length ${past.k.rows} like past_key wanted, got ${past.v.rows}`,
      );
    k = concatenated(past.k, k);
    v = concatenated(past.v, v);
  }
  const wanted = readOperatorOptions(
    options,
    outputNames,
    hasPast ? outputNames : (['output'] as const),
  );
  const call: AttendOptions = {
    causal: readFlag('unidirectional', attrs.unidirectional),
    causalOffset: k.rows - newKeys,
    signal: wanted.signal,
  };
  const scale = readFinite('scale', attrs.scale ?? 0);
  if (scale !== 0) call.scale = scale;
  if (attrs.mask_filter_value !== undefined)
    readFinite('mask_filter_value', attrs.mask_filter_value);
  if (given.key_padding_mask !== undefined) {
    Object.assign(
      call,
      readKeyMask('key_padding_mask', given.key_padding_mask, q, k.rows, newKeys),
    );
  }
  if (given.attention_bias !== undefined) {
    const sizes: [number, number, number, number] = [q.batch, q.heads, q.rows, k.rows];
    Object.assign(call, readMask('attention_bias', given.attention_bias, sizes));
  }
  const { output } = await attend(engine, q, k, v, call);

  const result: MultiHeadAttentionOutputs = { output: headsTensor(output) };
  if (wanted.outputs.has('present_key')) result.present_key = presentTensor(k, hasPast);
  if (wanted.outputs.has('present_value')) result.present_value = presentTensor(v, hasPast);
  return result;
}

function readPast(name: string, value: unknown, present: Heads): Heads {
  const tensor = readFloatTensor(name, value);
  if (tensor.type !== present.type)
    throw invalidType(`${name}: ${present.type} like query wanted, got ${tensor.type}`);
  const past = headsOfRank4(name, tensor);
  checkPast(name, past, name === 'past_key' ? 'key' : 'value', present);
  return past;
}

// The projections as heads, with their biases.
function readProjections(
  given: Record<string, unknown>,
  numHeads: number,
): { q: Heads; k: Heads; v: Heads } {
  const query = readFloatTensor('query', given.query);
  const key = readOptionalFloats('key', given.key);
  const value = readOptionalFloats('value', given.value);
  const bias = readOptionalFloats('bias', given.bias);
  for (const [name, tensor] of [
    ['key', key],
    ['value', value],
    ['bias', bias],
  ] as const) {
    if (tensor !== undefined) checkSameType(name, tensor, 'query', query);
  }
  let q: Heads;
  let k: Heads;
  let v: Heads;
  if (key === undefined) {
    if (value !== undefined) throw invalidValue('key: needed because value is given');
    checkPacked('query', query, numHeads, 3);
    [q, k, v] = [
      unpacked('query', query, 0),
      unpacked('query', query, 1),
      unpacked('query', query, 2),
    ];
  } else {
    q = headsOfRank3('query', query, 'num_heads', numHeads);
    if (key.shape.length === 5) {
      if (value !== undefined) throw invalidValue('value: none wanted beside a packed key');
      if (bias !== undefined) throw invalidValue('bias: none wanted beside a packed key');
      checkPacked('key', key, numHeads, 2);
      [k, v] = [unpacked('key', key, 0), unpacked('key', key, 1)];
    } else {
      if (value === undefined) throw invalidValue('value: needed beside a key that is not packed');
      k = readKeys('key', key, numHeads);
      v = readKeys('value', value, numHeads);
    }
  }
  if (bias === undefined) return { q, k, v };
  const [width, valueWidth] = [q.heads * q.size, v.heads * v.size];
  checkShape('bias', bias.shape, [2 * width + valueWidth], '[H·D + H·D + H·Dv]');
  q = withBias(q, bias.data.subarray(0, width));
  // Keys and values of rank 4 have their biases in them already.
  if (key?.shape.length !== 4) k = withBias(k, bias.data.subarray(width, 2 * width));
  if (value?.shape.length !== 4) v = withBias(v, bias.data.subarray(2 * width));
  return { q, k, v };
}

function readKeys(name: string, tensor: FloatTensor, numHeads: number): Heads {
  if (tensor.shape.length !== 4) return headsOfRank3(name, tensor, 'num_heads', numHeads);
  const heads = headsOfRank4(name, tensor);
  if (heads.heads !== numHeads) {
    throw invalidShape(
      `${name}: num_heads = ${numHeads} heads wanted, got shape [${tensor.shape}]`,
    );
  }
  return heads;
}

function checkPacked(name: string, { shape }: FloatTensor, numHeads: number, parts: number): void {
  if (shape.length !== 5 || shape[2] !== numHeads || shape[3] !== parts) {
    throw invalidShape(
      `${name}: packed, [B,L,H,${parts},D] with num_heads = ${numHeads}, wanted, got shape [${shape}]`,
    );
  }
}
