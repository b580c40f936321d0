// ONNX: the operator GroupQueryAttention of com.microsoft: causal attention over a cache whose rows have their own lengths.
import type { Engine } from '../engine.js';
import { invalidShape, invalidValue, unsupported } from '../errors.js';
import { readChoice, readFinite, readInteger, readOptions } from '../validation/options.js';
import { checkShape, maxSize } from '../validation/shapes.js';
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
  arranged,
  checkPair,
  checkPast,
  columns,
  headsOfRank3,
  headsOfRank4,
  type Heads,
} from './heads.js';
import { checkPositions, checkRotarySize, checkTables, rotated } from './rotation.js';
import {
  checkSameType,
  readFlag,
  readFloatTensor,
  readIntegerTensor,
  readOptionalFloats,
  readScalar,
  zerosLike,
  type OnnxIntegersLike,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link groupQueryAttention}, by ONNX Runtime's names. */
export interface GroupQueryAttentionInputs {
  /** `[B,L,H·D]`, or q, k and v packed, `[B,L,(H+2·G)·D]`, without key and value. */
  query: OnnxTensorLike;
  /** `[B,L,G·D]`: the new keys. */
  key?: OnnxTensorLike | undefined;
  /** `[B,L,G·D]`. */
  value?: OnnxTensorLike | undefined;
  /** `[B,G,P,D]`: the cache, of which the first `seqlens_k + 1 − L` rows are read. */
  past_key?: OnnxTensorLike | undefined;
  /** `[B,G,P,D]`. */
  past_value?: OnnxTensorLike | undefined;
  /** `[B]`: valid keys, the new ones included, less 1. */
  seqlens_k: OnnxIntegersLike;
  /** The longest of these lengths. Equal to L it means a first prompt, for which nothing of the past is read. */
  total_sequence_length: OnnxIntegersLike;
  /** `[positions, r/2]`, with `do_rotary`. */
  cos_cache?: OnnxTensorLike | undefined;
  /** `[positions, r/2]`, with `do_rotary`. */
  sin_cache?: OnnxTensorLike | undefined;
  /**
   * `[B,L]`. Of a first prompt only the first is read, as in ONNX Runtime: there the rows of every batch count up from it. Default:
   * the places of the new tokens.
   */
  position_ids?: OnnxIntegersLike | undefined;
  /** `[B or 1, H or 1, L, total]`. */
  attention_bias?: OnnxTensorLike | undefined;
  /** `[H]`: one more logit a head in the softmax's denominator. */
  head_sink?: OnnxTensorLike | undefined;
}

/** Attributes of {@link groupQueryAttention}. */
export interface GroupQueryAttentionAttributes {
  /** H. */
  num_heads: number;
  /** G. */
  kv_num_heads: number;
  /** Default 1/√D, which 0 also means. */
  scale?: number | undefined;
  /** Default 0, none. */
  softcap?: number | undefined;
  /** Keys that a row sees, **itself included**; −1 all. Default −1. */
  local_window_size?: number | undefined;
  /** Turn queries and new keys. Default 0. */
  do_rotary?: number | boolean | undefined;
  /** Pairs are neighbours rather than halves. Default 0. */
  rotary_interleaved?: number | boolean | undefined;
  /** 1: a logit of 0 in the denominator, as with a `head_sink` of zeros. Default 0 (or −1). */
  smooth_softmax?: number | boolean | undefined;
  /** What `output_qk` is: 1 the scores with bias and mask (−∞ where hidden), 2 the weights. Default 0: there is none. */
  qk_output?: number | undefined;
  /** Only 'NONE', the default: the cache is not quantised. */
  k_quant_type?: string | undefined;
  /** Only 'NONE'. */
  v_quant_type?: string | undefined;
  /** Only 0. */
  kv_cache_bit_width?: number | undefined;
}

const outputNames = ['output', 'present_key', 'present_value', 'output_qk'] as const;

/** Names of the outputs of {@link groupQueryAttention}. */
export type GroupQueryAttentionOutput = (typeof outputNames)[number];

/** Outputs of {@link groupQueryAttention}: `output`, and what was asked for. */
export interface GroupQueryAttentionOutputs {
  /** `[B,L,H·D]`. */
  output: OnnxTensor;
  /** `[B,G,max(P, total),D]`; rows past a batch's length are 0. */
  present_key?: OnnxTensor;
  /** As `present_key`. */
  present_value?: OnnxTensor;
  /** `[B,H,L,total]`. */
  output_qk?: OnnxTensor;
}

const inputNames = new Set([
  ...['query', 'key', 'value', 'past_key', 'past_value', 'seqlens_k', 'total_sequence_length'],
  ...['cos_cache', 'sin_cache', 'position_ids', 'attention_bias', 'head_sink'],
  ...['k_scale', 'v_scale'],
]);
const attributeNames = new Set([
  ...['num_heads', 'kv_num_heads', 'scale', 'softcap', 'local_window_size', 'do_rotary'],
  ...['rotary_interleaved', 'smooth_softmax', 'qk_output'],
  ...['k_quant_type', 'v_quant_type', 'kv_cache_bit_width'],
]);
const quantTypes = ['NONE', 'PER_TENSOR', 'PER_CHANNEL'] as const;

/**
 * ONNX Runtime's GroupQueryAttention (com.microsoft): attention of L new tokens over the cache and themselves, always causal.
 *
 * @param options `outputs`: by default `output`, `present_key` and `present_value`.
 * @throws As `engine.attention`, naming ONNX Runtime's inputs and attributes; HeadwiseError `UNSUPPORTED` for quantised
 * caches.
 */
export async function groupQueryAttention(
  engine: Engine,
  inputs: GroupQueryAttentionInputs,
  attributes: GroupQueryAttentionAttributes,
  options?: OperatorOptions<GroupQueryAttentionOutput>,
): Promise<GroupQueryAttentionOutputs> {
  const given = readOptions('inputs', inputs, inputNames);
  const attrs = readOptions('attributes', attributes, attributeNames);
  refuseQuantised(given, attrs);
  const projected = readProjections(given, attrs);
  const lengths = readLengths(given, projected.q);
  const turned = readRotation(given, attrs, projected.q, projected.k, lengths);
  const { q } = turned;
  const k = appended('past_key', given.past_key, 'key', turned.k, lengths);
  const v = appended('past_value', given.past_value, 'value', projected.v, lengths);
  if (k.rows !== v.rows)
    throw invalidShape(
      `past_value: the length of past_key wanted, got ${v.rows} rows in all, not ${k.rows}`,
    );

  const wanted = readOperatorOptions(options, outputNames, [
    'output',
    'present_key',
    'present_value',
  ]);
  const call: AttendOptions = {
    ...readScores(given, attrs, q, k.rows, lengths.total),
    causal: true,
    causalOffset: lengths.past,
    kvLengths: lengths.valid,
    signal: wanted.signal,
  };
  const matrix = readInteger('qk_output', attrs.qk_output ?? 0, 0, 2);
  if (wanted.outputs.has('output_qk')) {
    if (matrix === 0)
      throw invalidValue('qk_output: 1 or 2 wanted for the output output_qk, got 0');
    if (matrix === 1) call.returnScores = 'masked';
    else call.returnWeights = true;
  }
  const { output, weights, scores } = await attend(engine, q, k, v, call);

  const result: GroupQueryAttentionOutputs = { output: headsTensor(output) };
  if (wanted.outputs.has('present_key')) result.present_key = presentTensor(k, true);
  if (wanted.outputs.has('present_value')) result.present_value = presentTensor(v, true);
  const qk = scoresTensor(q.type, weights ?? scores, q, k.rows, lengths.total);
  if (qk !== undefined) result.output_qk = qk;
  return result;
}

function refuseQuantised(given: Record<string, unknown>, attrs: Record<string, unknown>): void {
  for (const name of ['k_quant_type', 'v_quant_type']) {
    const type = attrs[name] === undefined ? 'NONE' : readChoice(name, attrs[name], quantTypes);
    if (type !== 'NONE') throw unsupported(`${name}: quantised caches are not supported`);
  }
  if (readInteger('kv_cache_bit_width', attrs.kv_cache_bit_width ?? 0, 0, 16) !== 0)
    throw unsupported('kv_cache_bit_width: quantised caches are not supported');
  for (const name of ['k_scale', 'v_scale']) {
    if (given[name] !== undefined) throw unsupported(`${name}: quantised caches are not supported`);
  }
}

function readProjections(
  given: Record<string, unknown>,
  attrs: Record<string, unknown>,
): { q: Heads; k: Heads; v: Heads } {
  const numHeads = readInteger('num_heads', attrs.num_heads, 1, maxSize);
  const kvHeads = readInteger('kv_num_heads', attrs.kv_num_heads, 1, maxSize);
  let query = readFloatTensor('query', given.query);
  checkPair('key', given.key, 'value', given.value);
  let key = readOptionalFloats('key', given.key);
  let value = readOptionalFloats('value', given.value);
  if (key === undefined || value === undefined) {
    const all = headsOfRank3('query', query, 'num_heads + 2·kv_num_heads', numHeads + 2 * kvHeads);
    const { size } = all;
    const packed = query;
    query = columns(packed, 0, numHeads * size);
    key = columns(packed, numHeads * size, kvHeads * size);
    value = columns(packed, (numHeads + kvHeads) * size, kvHeads * size);
  }
  checkSameType('key', key, 'query', query);
  checkSameType('value', value, 'query', query);
  const q = headsOfRank3('query', query, 'num_heads', numHeads);
  const k = headsOfRank3('key', key, 'kv_num_heads', kvHeads);
  const v = headsOfRank3('value', value, 'kv_num_heads', kvHeads);
  checkTogether(['query', q], ['key', k], ['value', v]);
  if (k.rows !== q.rows)
    throw invalidShape(`key: length ${q.rows} like query wanted, got ${k.rows}`);
  return { q, k, v };
}

interface Lengths {
  /** [B]: rows of the past that are read. */
  past: Int32Array;
  /** [B]: valid keys. */
  valid: Int32Array;
  total: number;
  /** A first prompt, for which nothing of the past is read. */
  isPrompt: boolean;
}

function readLengths(given: Record<string, unknown>, q: Heads): Lengths {
  const total = readScalar('total_sequence_length', given.total_sequence_length);
  if (total < q.rows) {
    throw invalidValue(
      `total_sequence_length: at least query's length ${q.rows} wanted, got ${total}`,
    );
  }
  // Old models have [B,1].
  const { data, shape } = readIntegerTensor('seqlens_k', given.seqlens_k);
  if (data.length !== q.batch || shape[0] !== q.batch) {
    throw invalidShape(`seqlens_k: shape [${q.batch}] ([B]) wanted, got [${shape}]`);
  }
  const isPrompt = total === q.rows;
  const valid = data.map((last, b) => {
    // A prompt may be padded on the right, a row of the cache is not.
    const least = isPrompt ? 0 : q.rows;
    return readInteger(`seqlens_k[${b}] + 1`, last + 1, least, total);
  });
  return { total, valid, isPrompt, past: valid.map((length) => (isPrompt ? 0 : length - q.rows)) };
}

function readRotation(
  given: Record<string, unknown>,
  attrs: Record<string, unknown>,
  q: Heads,
  k: Heads,
  { past, isPrompt }: Lengths,
): { q: Heads; k: Heads } {
  const interleaved = readFlag('rotary_interleaved', attrs.rotary_interleaved);
  if (!readFlag('do_rotary', attrs.do_rotary)) return { q, k };
  const cos = readFloatTensor('cos_cache', given.cos_cache);
  const sin = readFloatTensor('sin_cache', given.sin_cache);
  const width = 2 * (cos.shape[cos.shape.length - 1] ?? 0);
  const pairs = checkRotarySize("twice cos_cache's width", width, q.size) / 2;
  checkTables(cos, sin, 2, pairs);
  let positions = Array.from({ length: q.batch * q.rows }, (_, row) => {
    const b = Math.floor(row / q.rows);
    return (past[b] as number) + (row % q.rows);
  });
  if (given.position_ids !== undefined) {
    const { data, shape } = readIntegerTensor('position_ids', given.position_ids);
    checkShape('position_ids', shape, [q.batch, q.rows], '[B,L]');
    positions = isPrompt ? positions.map((place) => (data[0] as number) + place) : Array.from(data);
  }
  checkPositions('position_ids', positions, cos.shape[0] as number);
  const rowOf = (b: number, i: number) => positions[b * q.rows + i] as number;
  const tables = { cos, sin, pairs, rowOf, interleaved };
  return { q: rotated(q, tables), k: rotated(k, tables) };
}

// The cache with the new rows behind each batch's own length, [B,G,max(P, total),D], 0 past them.
function appended(
  name: string,
  value: unknown,
  presentName: string,
  present: Heads,
  { past: lengths, total }: Lengths,
): Heads {
  const after = arranged(present, false);
  const { batch, heads, size, rows: added } = after;
  const tensor = readOptionalFloats(name, value);
  let before: Heads | undefined;
  if (tensor !== undefined) {
    before = headsOfRank4(name, tensor);
    if (tensor.type !== present.type)
      checkSameType(name, tensor, presentName, { ...tensor, type: present.type });
    checkPast(name, before, presentName, present);
  }
  const held = before?.rows ?? 0;
  lengths.forEach((length, b) => {
    if (length > held) {
      throw invalidValue(
        `${name}: ${length} rows for batch ${b}, as seqlens_k says, wanted, got ${held}`,
      );
    }
  });
  const rows = Math.max(held, total);
  const data = zerosLike(after.data, batch * heads * rows * size);
  for (let b = 0; b < batch; b++) {
    const pastLength = (lengths[b] as number) * size;
    for (let h = 0; h < heads; h++) {
      const head = b * heads + h;
      const at = head * rows * size;
      if (before !== undefined) {
        const from = head * held * size;
        data.set(before.data.subarray(from, from + pastLength), at);
      }
      const from = head * added * size;
      data.set(after.data.subarray(from, from + added * size), at + pastLength);
    }
  }
  return { ...after, data, rows };
}

function readScores(
  given: Record<string, unknown>,
  attrs: Record<string, unknown>,
  q: Heads,
  keys: number,
  total: number,
): AttendOptions {
  const call: AttendOptions = {};
  const scale = readFinite('scale', attrs.scale ?? 0);
  if (scale !== 0) call.scale = scale;
  if (attrs.softcap !== undefined) call.softcap = readFinite('softcap', attrs.softcap);
  const width = readInteger('local_window_size', attrs.local_window_size ?? -1, -1, maxSize);
  if (width === 0) throw invalidValue('local_window_size: -1 or at least 1 wanted, got 0');
  // The width counts the position itself.
  if (width > 0) call.window = [width - 1, Infinity];
  if (given.attention_bias !== undefined) {
    const { shape } = readFloatTensor('attention_bias', given.attention_bias);
    if (shape.length !== 4 || shape[3] !== total) {
      throw invalidShape(
        `attention_bias: [B or 1, H or 1, L, ${total}] (total_sequence_length) wanted, got [${shape}]`,
      );
    }
    const sizes: [number, number, number, number] = [q.batch, q.heads, q.rows, keys];
    Object.assign(call, readMask('attention_bias', given.attention_bias, sizes));
  }
  const smooth = attrs.smooth_softmax === -1 ? 0 : attrs.smooth_softmax;
  if (given.head_sink !== undefined) {
    const sinks = readFloatTensor('head_sink', given.head_sink);
    checkShape('head_sink', sinks.shape, [q.heads], '[H]');
    call.sinks = sinks;
  } else if (readFlag('smooth_softmax', smooth)) {
    call.sinks = new Float32Array(q.heads);
  }
  return call;
}
