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
import { Plan } from './plan.js';
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

/** Sets the struct's numbers, and plans the arrays. `layerOf`, `cacheOf` and `decodingOf` turn a number into an address, or throw. */
export function planOf(
  request: ComputeRequest,
  struct: Struct,
  layerOf: (layer: number) => number,
  cacheOf: (request: CacheStepRequest) => number,
  decodingOf: (request: TransformerDecodeRequest) => number,
): Plan {
  const plan = new Plan(struct.size);
  struct.clear();
  switch (request.op) {
    case 'attention':
      planAttention(request, struct, plan);
      break;
    case 'attentionBackward':
      planAttentionBackward(request, struct, plan);
      break;
    case 'layerForward':
      struct.set('layer', layerOf(request.layer));
      planLayerForward(request, struct, plan);
      break;
    case 'cacheStep':
      struct.set('cache', cacheOf(request));
      planCacheStep(request, struct, plan);
      break;
    case 'rotaryEmbedding':
      planRotary(request, struct, plan);
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
      plan.input('outputs', joined(request.outputs));
      plan.input('log_sum_exps', joined(request.logSumExps));
      plan.output('out', 'output', length * size);
      plan.output('log_sum_exp', 'logSumExp', length);
      break;
    }
    case 'transformerForward': {
      struct.set('model', layerOf(request.model));
      planBatch(request, struct, plan);
      plan.output('logits', 'output', request.logits);
      if (request.weights > 0) {
        plan.output('weights', 'weights', request.weights);
      }
      break;
    }
    case 'transformerStep': {
      struct.set('model', layerOf(request.model));
      for (const [field, value] of Object.entries(request.settings)) struct.set(field, value);
      planBatch(request, struct, plan);
      plan.output('result', 'output', stepResults);
      break;
    }
    case 'transformerDecode':
      struct.set('model', layerOf(request.model));
      struct.set('decoding', decodingOf(request));
      planDecode(request, struct, plan);
      break;
    case 'linear': {
      const { rows, out, x, kernel, bias } = request;
      struct.set('rows', rows);
      struct.set('in', request.in);
      struct.set('out', out);
      plan.input('x', x);
      plan.input('kernel', kernel);
      plan.input('bias', bias);
      plan.output('y', 'output', rows * out);
      break;
    }
    case 'embedding': {
      const { rows, vocabulary, width, ids, table } = request;
      struct.set('rows', rows);
      struct.set('vocabulary', vocabulary);
      struct.set('width', width);
      plan.input('ids', ids);
      plan.input('table', table);
      plan.output('y', 'output', rows * width);
      break;
    }
    case 'positionalEncoding': {
      const { length, width } = request;
      struct.set('length', length);
      struct.set('width', width);
      plan.output('y', 'output', length * width);
      break;
    }
  }
  return plan;
}

// Loss, counted and correct rows, norm of the gradients, whether they were applied; then the letters of a name.
const stepResults = 5 + 96;

function planBatch(request: TransformerBatch, struct: Struct, plan: Plan): void {
  struct.set('batch', request.batch);
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  struct.set('ignored_label', -1);
  struct.set('target_open', request.targetOpen === true ? 1 : 0);
  plan.input('source', request.source);
  plan.input('source_vectors', request.sourceVectors);
  plan.input('source_mask', request.sourceMask);
  plan.input('target', request.target);
  plan.input('target_mask', request.targetMask);
  plan.input('memory_mask', request.memoryMask);
  plan.input('labels', request.labels);
  for (const { scope, maskField, maskStrides, biasField, biasStrides } of scopes) {
    const { mask, bias } = request[`${scope}Scope`] ?? {};
    plan.input(maskField, mask?.data);
    if (mask !== undefined) struct.setStrides(maskStrides, mask.strides);
    plan.input(biasField, bias?.data);
    if (bias !== undefined) struct.setStrides(biasStrides, bias.strides);
  }
}

function planDecode(request: TransformerDecodeRequest, struct: Struct, plan: Plan): void {
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  plan.input('target', request.target as Int32Array);
  const { source, sourceVectors, sourceMask } = request;
  plan.input('source', source);
  plan.input('source_vectors', sourceVectors);
  plan.input('source_mask', sourceMask);
  plan.output('logits', 'output', request.logits);
}

function planSettings(request: AttentionSettings, struct: Struct, plan: Plan): void {
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
    plan.input('bias', request.bias.data);
    struct.setStrides('bias_strides', request.bias.strides);
  }
  if (request.mask !== undefined) {
    plan.input('mask', request.mask.data);
    struct.setStrides('mask_strides', request.mask.strides);
    struct.set('mask_bits', request.mask.bits === true ? 1 : 0);
  }
  if (request.blockMask !== undefined) {
    struct.set('block_size', request.blockMask.size);
    plan.input('block_rows', request.blockMask.rows);
    plan.input('block_columns', request.blockMask.columns);
  }
  plan.input('key_padding_mask', request.keyPaddingMask);
  plan.input('kv_lengths', request.kvLengths);
  plan.input('q_lengths', request.qLengths);
  plan.input('causal_offsets', request.causalOffsets);
  plan.input('alibi_slopes', request.alibiSlopes);
  plan.input('sinks', request.sinks);
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
    if (!all) plan.input('weight_heads', request.weightHeads as Int32Array);
    plan.output('weights', 'weights', batch * count * queries * keys);
  }
  if (request.scoreStage !== 0) {
    struct.set('score_stage', request.scoreStage);
    plan.output('scores', 'scores', rows * keys);
  }
  if (request.logSumExp) {
    const packedRows = request.packed && heads * request.packed.queries;
    plan.output('log_sum_exp', 'logSumExp', packedRows ?? rows);
  }
}

function planAttention(request: AttentionRequest, struct: Struct, plan: Plan): void {
  planScores(request, struct, plan);
  plan.input('v', request.v);
  const rows = request.packed?.queries ?? request.batch * request.queries;
  const length = rows * request.heads * request.valueDim;
  plan.output('out', 'output', length);
}

function planAttentionBackward(
  request: AttentionBackwardRequest,
  struct: Struct,
  plan: Plan,
): void {
  planScores(request, struct, plan);
  const { q, k, v, bias, sinks } = request;
  plan.input('v', v);
  plan.input('out', request.output);
  plan.input('log_sum_exp', request.forwardLogSumExp);
  plan.input('d_out', request.dOutput);
  plan.output('dq', 'dq', q.length);
  plan.output('dk', 'dk', k.length);
  plan.output('dv', 'dv', v.length);
  if (bias !== undefined) {
    plan.output('d_bias', 'dBias', bias.data.length);
  }
  if (sinks !== undefined) {
    plan.output('d_sinks', 'dSinks', sinks.length);
  }
}

// What forward and backward pass have in common.
function planScores(request: Omit<AttentionRequest, 'op'>, struct: Struct, plan: Plan): void {
  planSettings(request, struct, plan);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setStrides('q_strides', request.qStrides);
  struct.setStrides('k_strides', request.kStrides);
  struct.setStrides('v_strides', request.vStrides);
  struct.setStrides('out_strides', request.outStrides);
  plan.input('q', request.q);
  plan.input('k', request.k);
  const { packed } = request;
  if (packed !== undefined) {
    plan.input('q_starts', packed.qStarts);
    plan.input('k_starts', packed.kStarts);
    struct.setStrides('log_sum_exp_strides', [0, packed.queries, 1]);
  }
}

function planCacheStep(request: CacheStepRequest, struct: Struct, plan: Plan): void {
  planSettings(request, struct, plan);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setStrides('k_strides', request.kStrides);
  struct.setStrides('v_strides', request.vStrides);
  plan.input('k', request.k);
  plan.input('v', request.v);
  if (request.q !== undefined) {
    struct.setStrides('q_strides', request.qStrides as Strides);
    struct.setStrides('out_strides', request.outStrides as Strides);
    plan.input('q', request.q);
    const length = request.batch * request.heads * request.queries * request.valueDim;
    plan.output('out', 'output', length);
  }
}

function planRotary(request: RotaryRequest, struct: Struct, plan: Plan): void {
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
  plan.input('x', request.x);
  if (positions !== undefined) {
    struct.set('row_positions_batch', positions.batchStride);
    plan.input('row_positions', positions.data);
  }
  if (tables !== undefined) {
    struct.set('table_rows', tables.rows);
    plan.input('cos', tables.cos);
    plan.input('sin', tables.sin);
  }
  plan.output('y', 'output', batch * heads * rows * size);
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

function planLayerForward(request: LayerForwardRequest, struct: Struct, plan: Plan): void {
  planSettings(request, struct, plan);
  const { batch, queries, keys, outputDim } = request;
  plan.input('call.query', request.query);
  plan.input('call.key', request.key);
  plan.input('call.value', request.value);
  plan.output('call.output', 'output', batch * queries * outputDim);
  if (request.averageWeights) {
    const length = batch * queries * keys;
    plan.output('call.average_weights', 'averageWeights', length);
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
