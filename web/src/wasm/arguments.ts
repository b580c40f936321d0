// Wasm: each computation's request as the fields of its struct, the arrays that go in and the arrays that come out. Only
// this file knows how requests map to the core's structs; core.ts does the rest the same way for all.
import {
  joined,
  type AttentionBackwardRequest,
  type AttentionRequest,
  type AttentionSettings,
  type CacheStepRequest,
  type ComputeRequest,
  type LayerForwardRequest,
  type Operation,
  type RotaryRequest,
  type RotarySettings,
  type Strides,
  type TransformerBatch,
  type TransformerDecodeRequest,
} from '../request.js';
import type { Bindings, Layout } from './glue.js';
import { Staging } from './staging.js';
import { Struct } from './struct.js';

/** An operation in the core: its struct, and what is called with the struct's address. */
export interface Entry {
  struct: Struct;
  run: (args: number) => number;
  begin: (args: number) => number;
}

type Named = readonly [struct: string, field?: string, inner?: string];

/** Each operation's struct; where another lies in one of its fields, that field and the other. */
const structNames: Record<Operation, Named> = {
  attention: ['AttentionArgs'],
  attentionBackward: ['AttentionBackwardArgs', 'attention', 'AttentionArgs'],
  layerForward: ['LayerForwardArgs', 'call.attention', 'AttentionArgs'],
  transformerForward: ['TransformerForwardArgs', 'batch', 'TransformerBatch'],
  transformerStep: ['TransformerStepArgs', 'batch', 'TransformerBatch'],
  transformerDecode: ['TransformerDecodeArgs'],
  linear: ['LinearArgs'],
  embedding: ['EmbeddingArgs'],
  positionalEncoding: ['PositionalEncodingArgs'],
  rotaryEmbedding: ['RotaryArgs'],
  mergeAttention: ['MergeArgs'],
  cacheStep: ['KeyValueStepArgs', 'call', 'AttentionArgs'],
};

export function entriesOf(bindings: Bindings, layout: Layout): Record<Operation, Entry> {
  const entries = (Object.entries(structNames) as [Operation, Named][]).map(
    ([op, [name, field, inner]]): [Operation, Entry] => {
      const struct = new Struct(layout, name);
      if (field !== undefined && inner !== undefined) struct.with(field, inner);
      const capitalized = `${op.charAt(0).toUpperCase()}${op.slice(1)}` as Capitalize<Operation>;
      return [op, { struct, run: bindings[`_${op}`], begin: bindings[`begin${capitalized}`] }];
    },
  );
  return Object.fromEntries(entries) as Record<Operation, Entry>;
}

/** From an object's number, or a call on it, to its address; each throws where there is none. */
export interface Addresses {
  layer(layer: number): number;
  model(model: number): number;
  cache(request: CacheStepRequest): number;
  decoding(request: TransformerDecodeRequest): number;
}

/** Sets the struct's numbers, and says where each array is to lie. */
export function stagingOf(request: ComputeRequest, struct: Struct, of: Addresses): Staging {
  const staging = new Staging(struct.size);
  struct.clear();
  switch (request.op) {
    case 'attention':
      stageAttention(request, struct, staging);
      break;
    case 'attentionBackward':
      stageAttentionBackward(request, struct, staging);
      break;
    case 'layerForward':
      struct.set('layer', of.layer(request.layer));
      stageLayerForward(request, struct, staging);
      break;
    case 'cacheStep':
      struct.set('cache', of.cache(request));
      stageCacheStep(request, struct, staging);
      break;
    case 'rotaryEmbedding':
      stageRotary(request, struct, staging);
      break;
    case 'mergeAttention': {
      const { parts, batch, heads, rows, size } = request;
      struct.set('parts', parts);
      struct.set('batch', batch);
      struct.set('heads', heads);
      struct.set('rows', rows);
      struct.set('size', size);
      struct.setStrides('strides', request.strides);
      const length = batch * heads * rows;
      staging.input('outputs', joined(request.outputs));
      staging.input('log_sum_exps', joined(request.logSumExps));
      staging.output('out', 'output', length * size);
      staging.output('log_sum_exp', 'logSumExp', length);
      break;
    }
    case 'transformerForward': {
      struct.set('model', of.model(request.model));
      stageBatch(request, struct, staging);
      staging.output('logits', 'output', request.logits);
      if (request.weights > 0) {
        staging.output('weights', 'weights', request.weights);
      }
      break;
    }
    case 'transformerStep': {
      struct.set('model', of.model(request.model));
      for (const [field, value] of Object.entries(request.settings)) struct.set(field, value);
      stageBatch(request, struct, staging);
      staging.output('result', 'output', stepResults);
      break;
    }
    case 'transformerDecode':
      struct.set('model', of.model(request.model));
      struct.set('decoding', of.decoding(request));
      stageDecode(request, struct, staging);
      break;
    case 'linear': {
      const { rows, out, x, kernel, bias } = request;
      struct.set('rows', rows);
      struct.set('in', request.in);
      struct.set('out', out);
      staging.input('x', x);
      staging.input('kernel', kernel);
      staging.input('bias', bias);
      staging.output('y', 'output', rows * out);
      break;
    }
    case 'embedding': {
      const { rows, vocabulary, width, ids, table } = request;
      struct.set('rows', rows);
      struct.set('vocabulary', vocabulary);
      struct.set('width', width);
      staging.input('ids', ids);
      staging.input('table', table);
      staging.output('y', 'output', rows * width);
      break;
    }
    case 'positionalEncoding': {
      const { length, width } = request;
      struct.set('length', length);
      struct.set('width', width);
      staging.output('y', 'output', length * width);
      break;
    }
  }
  return staging;
}

// Loss, counted and correct rows, norm of the gradients, whether they were applied; then the letters of a name.
const stepResults = 5 + 96;

function stageBatch(request: TransformerBatch, struct: Struct, staging: Staging): void {
  struct.set('batch', request.batch);
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  struct.set('ignored_label', -1);
  struct.set('target_open', request.targetOpen === true ? 1 : 0);
  staging.input('source', request.source);
  staging.input('source_vectors', request.sourceVectors);
  staging.input('source_mask', request.sourceMask);
  staging.input('target', request.target);
  staging.input('target_mask', request.targetMask);
  staging.input('memory_mask', request.memoryMask);
  staging.input('labels', request.labels);
  for (const { scope, maskField, maskStrides, biasField, biasStrides } of scopes) {
    const { mask, bias } = request[`${scope}Scope`] ?? {};
    staging.input(maskField, mask?.data);
    if (mask !== undefined) struct.setStrides(maskStrides, mask.strides);
    staging.input(biasField, bias?.data);
    if (bias !== undefined) struct.setStrides(biasStrides, bias.strides);
  }
}

function stageDecode(request: TransformerDecodeRequest, struct: Struct, staging: Staging): void {
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  staging.input('target', request.target as Int32Array);
  const { source, sourceVectors, sourceMask } = request;
  staging.input('source', source);
  staging.input('source_vectors', sourceVectors);
  staging.input('source_mask', sourceMask);
  staging.output('logits', 'output', request.logits);
}

function stageSettings(request: AttentionSettings, struct: Struct, staging: Staging): void {
  const { batch, heads, queries, keys } = request;
  struct.set('batch', batch);
  struct.set('heads', heads);
  struct.set('queries', queries);
  struct.set('keys', keys);
  struct.set('softcap', request.softcap);
  struct.set('causal', request.causal ? 1 : 0);
  struct.set('window_left', request.window[0]);
  struct.set('window_right', request.window[1]);
  if (request.bias !== undefined) {
    staging.input('bias', request.bias.data);
    struct.setStrides('bias_strides', request.bias.strides);
  }
  if (request.mask !== undefined) {
    staging.input('mask', request.mask.data);
    struct.setStrides('mask_strides', request.mask.strides);
    struct.set('mask_bits', request.mask.bits === true ? 1 : 0);
  }
  if (request.blockMask !== undefined) {
    struct.set('block_size', request.blockMask.size);
    staging.input('block_rows', request.blockMask.rows);
    staging.input('block_columns', request.blockMask.columns);
  }
  staging.input('key_padding_mask', request.keyPaddingMask);
  staging.input('kv_lengths', request.kvLengths);
  staging.input('q_lengths', request.qLengths);
  staging.input('causal_offsets', request.causalOffsets);
  staging.input('alibi_slopes', request.alibiSlopes);
  staging.input('sinks', request.sinks);
  if (request.dropout !== undefined) {
    struct.set('dropout_rate', request.dropout.rate);
    struct.set('dropout_seed_low', request.dropout.seed[0]);
    struct.set('dropout_seed_high', request.dropout.seed[1]);
  }
  const rows = batch * heads * queries;
  if (request.weightHeads !== undefined) {
    const all = request.weightHeads === 'all';
    const count = all ? heads : request.weightHeads.length;
    struct.set('weight_head_count', count);
    if (!all) staging.input('weight_heads', request.weightHeads as Int32Array);
    staging.output('weights', 'weights', batch * count * queries * keys);
  }
  if (request.scoreStage !== 0) {
    struct.set('score_stage', request.scoreStage);
    staging.output('scores', 'scores', rows * keys);
  }
  if (request.logSumExp) {
    const packedRows = request.packed && heads * request.packed.queries;
    staging.output('log_sum_exp', 'logSumExp', packedRows ?? rows);
  }
}

function stageAttention(request: AttentionRequest, struct: Struct, staging: Staging): void {
  stageScores(request, struct, staging);
  staging.input('v', request.v);
  const rows = request.packed?.queries ?? request.batch * request.queries;
  const length = rows * request.heads * request.valueDim;
  staging.output('out', 'output', length);
}

function stageAttentionBackward(
  request: AttentionBackwardRequest,
  struct: Struct,
  staging: Staging,
): void {
  stageScores(request, struct, staging);
  const { q, k, v, bias, sinks } = request;
  staging.input('v', v);
  staging.input('out', request.output);
  staging.input('log_sum_exp', request.forwardLogSumExp);
  staging.input('d_out', request.dOutput);
  staging.output('dq', 'dq', q.length);
  staging.output('dk', 'dk', k.length);
  staging.output('dv', 'dv', v.length);
  if (bias !== undefined) {
    staging.output('d_bias', 'dBias', bias.data.length);
  }
  if (sinks !== undefined) {
    staging.output('d_sinks', 'dSinks', sinks.length);
  }
}

// What forward and backward pass have in common.
function stageScores(
  request: Omit<AttentionRequest, 'op'>,
  struct: Struct,
  staging: Staging,
): void {
  stageSettings(request, struct, staging);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setStrides('q_strides', request.qStrides);
  struct.setStrides('k_strides', request.kStrides);
  struct.setStrides('v_strides', request.vStrides);
  struct.setStrides('out_strides', request.outStrides);
  staging.input('q', request.q);
  staging.input('k', request.k);
  const { packed } = request;
  if (packed !== undefined) {
    staging.input('q_starts', packed.qStarts);
    staging.input('k_starts', packed.kStarts);
    struct.setStrides('log_sum_exp_strides', [0, packed.queries, 1]);
  }
}

function stageCacheStep(request: CacheStepRequest, struct: Struct, staging: Staging): void {
  stageSettings(request, struct, staging);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setStrides('k_strides', request.kStrides);
  struct.setStrides('v_strides', request.vStrides);
  staging.input('k', request.k);
  staging.input('v', request.v);
  if (request.q !== undefined) {
    struct.setStrides('q_strides', request.qStrides as Strides);
    struct.setStrides('out_strides', request.outStrides as Strides);
    staging.input('q', request.q);
    const length = request.batch * request.heads * request.queries * request.valueDim;
    staging.output('out', 'output', length);
  }
}

function stageRotary(request: RotaryRequest, struct: Struct, staging: Staging): void {
  const { batch, heads, rows, size, scaling, positions, tables } = request;
  struct.set('batch', batch);
  struct.set('heads', heads);
  struct.set('rows', rows);
  struct.set('size', size);
  struct.set('dim', request.dim);
  struct.set('interleaved', request.interleaved ? 1 : 0);
  struct.set('base', request.base);
  struct.set('position', request.offset);
  setRotaryScaling(struct, 'scaling', scaling);
  struct.setStrides('x_strides', request.strides);
  struct.setStrides('y_strides', request.strides);
  staging.input('x', request.x);
  if (positions !== undefined) {
    struct.set('row_positions_batch', positions.batchStride);
    staging.input('row_positions', positions.data);
  }
  if (tables !== undefined) {
    struct.set('table_rows', tables.rows);
    staging.input('cos', tables.cos);
    staging.input('sin', tables.sin);
  }
  staging.output('y', 'output', batch * heads * rows * size);
}

/** A rotary embedding's scaling, in the struct's field `name`. */
function setRotaryScaling(struct: Struct, name: string, scaling: RotaryRequest['scaling']): void {
  struct.set(`${name}.rule`, scaling?.rule ?? 0);
  struct.set(`${name}.factor`, scaling?.factor ?? 1);
  struct.set(`${name}.original_length`, scaling?.originalLength ?? 0);
  struct.set(`${name}.low`, scaling?.low ?? 1);
  struct.set(`${name}.high`, scaling?.high ?? 4);
  struct.set(`${name}.magnitude`, scaling?.magnitude ?? 1);
}

/** The rotary embedding of a layer or a cache; none without `rope`. */
export function setRope(struct: Struct, rope: RotarySettings | undefined): void {
  struct.set('rope_dim', rope?.dim ?? 0);
  struct.set('rope_base', rope?.base ?? 1);
  struct.set('rope_interleaved', rope?.interleaved === true ? 1 : 0);
  setRotaryScaling(struct, 'rope_scaling', rope?.scaling);
}

function stageLayerForward(request: LayerForwardRequest, struct: Struct, staging: Staging): void {
  stageSettings(request, struct, staging);
  const { batch, queries, keys, outputDim } = request;
  staging.input('call.query', request.query);
  staging.input('call.key', request.key);
  staging.input('call.value', request.value);
  staging.output('call.output', 'output', batch * queries * outputDim);
  if (request.averageWeights) {
    const length = batch * queries * keys;
    staging.output('call.average_weights', 'averageWeights', length);
  }
}

// Names put together once, not at every call.
const scopes = (['source', 'target', 'memory'] as const).map((scope) => ({
  scope,
  maskField: `${scope}_scope.mask`,
  maskStrides: `${scope}_scope.mask_strides`,
  biasField: `${scope}_scope.bias`,
  biasStrides: `${scope}_scope.bias_strides`,
}));
