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
  type Response,
  type RotaryRequest,
  type RotarySettings,
  type Strides,
  type TransformerBatch,
  type TransformerDecodeRequest,
} from '../request.js';
import type { Bindings, Layout } from './glue.js';
import { Struct } from './struct.js';

/** An array that goes in, and the field that is to point at it. */
export interface Input {
  field: string;
  array: Float32Array | Int32Array | Uint8Array;
}

/** An array of floats that comes out, and the field that is to point at its place. */
export interface Output {
  field: string;
  result: Exclude<keyof Response, 'parameters' | 'lengths' | 'tensors'>;
  length: number;
}

/** What a call stages besides the numbers in its struct. */
export interface Plan {
  inputs: Input[];
  outputs: Output[];
}

/** An operation in the core: its struct, and what is called with the struct's address. */
export interface Entry {
  struct: Struct;
  run: (args: number) => number;
  begin: (args: number) => number;
}

export function entriesOf(bindings: Bindings, layout: Layout): Record<Operation, Entry> {
  const struct = (name: string): Struct => new Struct(layout, name);
  return {
    attention: {
      struct: struct('AttentionArgs'),
      run: bindings._attention,
      begin: bindings.beginAttention,
    },
    attentionBackward: {
      struct: struct('AttentionBackwardArgs').with('attention', 'AttentionArgs'),
      run: bindings._attentionBackward,
      begin: bindings.beginAttentionBackward,
    },
    layerForward: {
      struct: struct('LayerForwardArgs').with('call.attention', 'AttentionArgs'),
      run: bindings._layerForward,
      begin: bindings.beginLayerForward,
    },
    transformerForward: {
      struct: struct('TransformerForwardArgs').with('batch', 'TransformerBatch'),
      run: bindings._transformerForward,
      begin: bindings.beginTransformerForward,
    },
    transformerStep: {
      struct: struct('TransformerStepArgs').with('batch', 'TransformerBatch'),
      run: bindings._transformerStep,
      begin: bindings.beginTransformerStep,
    },
    transformerDecode: {
      struct: struct('TransformerDecodeArgs'),
      run: bindings._transformerDecode,
      begin: bindings.beginTransformerDecode,
    },
    linear: {
      struct: struct('LinearArgs'),
      run: bindings._linear,
      begin: bindings.beginLinear,
    },
    embedding: {
      struct: struct('EmbeddingArgs'),
      run: bindings._embedding,
      begin: bindings.beginEmbedding,
    },
    positionalEncoding: {
      struct: struct('PositionalEncodingArgs'),
      run: bindings._positionalEncoding,
      begin: bindings.beginPositionalEncoding,
    },
    rotaryEmbedding: {
      struct: struct('RotaryArgs'),
      run: bindings._rotaryEmbedding,
      begin: bindings.beginRotaryEmbedding,
    },
    mergeAttention: {
      struct: struct('MergeArgs'),
      run: bindings._mergeAttention,
      begin: bindings.beginMergeAttention,
    },
    cacheStep: {
      struct: struct('KeyValueStepArgs').with('call', 'AttentionArgs'),
      run: bindings._cacheStep,
      begin: bindings.beginCacheStep,
    },
  };
}

/** Sets the struct's numbers. `layerOf`, `cacheOf` and `decodingOf` turn a number into an address, or throw. */
export function planOf(
  request: ComputeRequest,
  struct: Struct,
  layerOf: (layer: number) => number,
  cacheOf: (request: CacheStepRequest) => number,
  decodingOf: (request: TransformerDecodeRequest) => number,
): Plan {
  struct.clear();
  switch (request.op) {
    case 'attention':
      return planAttention(request, struct);
    case 'attentionBackward':
      return planAttentionBackward(request, struct);
    case 'layerForward':
      struct.set('layer', layerOf(request.layer));
      return planLayerForward(request, struct);
    case 'cacheStep':
      struct.set('cache', cacheOf(request));
      return planCacheStep(request, struct);
    case 'rotaryEmbedding':
      return planRotary(request, struct);
    case 'mergeAttention': {
      const { parts, batch, heads, rows, size } = request;
      struct.set('parts', parts);
      struct.set('batch', batch);
      struct.set('heads', heads);
      struct.set('rows', rows);
      struct.set('size', size);
      struct.setAll('strides', request.strides);
      const length = batch * heads * rows;
      return {
        inputs: [
          { field: 'outputs', array: joined(request.outputs) },
          { field: 'log_sum_exps', array: joined(request.logSumExps) },
        ],
        outputs: [
          { field: 'out', result: 'output', length: length * size },
          { field: 'log_sum_exp', result: 'logSumExp', length },
        ],
      };
    }
    case 'transformerForward': {
      struct.set('model', layerOf(request.model));
      const plan = planBatch(request, struct);
      plan.outputs.push({ field: 'logits', result: 'output', length: request.logits });
      if (request.weights > 0) {
        plan.outputs.push({ field: 'weights', result: 'weights', length: request.weights });
      }
      return plan;
    }
    case 'transformerStep': {
      struct.set('model', layerOf(request.model));
      for (const [field, value] of Object.entries(request.settings)) struct.set(field, value);
      const plan = planBatch(request, struct);
      plan.outputs.push({ field: 'result', result: 'output', length: stepResults });
      return plan;
    }
    case 'transformerDecode':
      struct.set('model', layerOf(request.model));
      struct.set('decoding', decodingOf(request));
      return planDecode(request, struct);
    case 'linear': {
      const { rows, out, x, kernel, bias } = request;
      struct.set('rows', rows);
      struct.set('in', request.in);
      struct.set('out', out);
      const inputs: Input[] = [
        { field: 'x', array: x },
        { field: 'kernel', array: kernel },
      ];
      if (bias !== undefined) inputs.push({ field: 'bias', array: bias });
      return { inputs, outputs: [{ field: 'y', result: 'output', length: rows * out }] };
    }
    case 'embedding': {
      const { rows, vocabulary, width, ids, table } = request;
      struct.set('rows', rows);
      struct.set('vocabulary', vocabulary);
      struct.set('width', width);
      return {
        inputs: [
          { field: 'ids', array: ids },
          { field: 'table', array: table },
        ],
        outputs: [{ field: 'y', result: 'output', length: rows * width }],
      };
    }
    case 'positionalEncoding': {
      const { length, width } = request;
      struct.set('length', length);
      struct.set('width', width);
      return { inputs: [], outputs: [{ field: 'y', result: 'output', length: length * width }] };
    }
  }
}

// Loss, counted and correct rows, norm of the gradients, whether they were applied; then the letters of a name.
const stepResults = 5 + 96;

function planBatch(request: TransformerBatch, struct: Struct): Plan {
  struct.set('batch', request.batch);
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  struct.set('ignored_label', -1);
  struct.set('target_open', request.targetOpen === true ? 1 : 0);
  const inputs: Input[] = [];
  const give = (field: string, array: Input['array'] | undefined): void => {
    if (array !== undefined) inputs.push({ field, array });
  };
  give('source', request.source);
  give('source_vectors', request.sourceVectors);
  give('source_mask', request.sourceMask);
  give('target', request.target);
  give('target_mask', request.targetMask);
  give('memory_mask', request.memoryMask);
  give('labels', request.labels);
  for (const { scope, maskField, maskStrides, biasField, biasStrides } of scopes) {
    const { mask, bias } = request[`${scope}Scope`] ?? {};
    give(maskField, mask?.data);
    if (mask !== undefined) struct.setAll(maskStrides, mask.strides);
    give(biasField, bias?.data);
    if (bias !== undefined) struct.setAll(biasStrides, bias.strides);
  }
  return { inputs, outputs: [] };
}

function planDecode(request: TransformerDecodeRequest, struct: Struct): Plan {
  struct.set('source_length', request.sourceLength);
  struct.set('target_length', request.targetLength);
  const inputs: Input[] = [{ field: 'target', array: request.target as Int32Array }];
  const { source, sourceVectors, sourceMask } = request;
  if (source !== undefined) inputs.push({ field: 'source', array: source });
  if (sourceVectors !== undefined) inputs.push({ field: 'source_vectors', array: sourceVectors });
  if (sourceMask !== undefined) inputs.push({ field: 'source_mask', array: sourceMask });
  return { inputs, outputs: [{ field: 'logits', result: 'output', length: request.logits }] };
}

function planSettings(request: AttentionSettings, struct: Struct): Plan {
  const { batch, heads, queries, keys } = request;
  const inputs: Input[] = [];
  const outputs: Output[] = [];
  const give = (field: string, array: Input['array'] | undefined): void => {
    if (array !== undefined) inputs.push({ field, array });
  };
  struct.set('batch', batch);
  struct.set('heads', heads);
  struct.set('queries', queries);
  struct.set('keys', keys);
  struct.set('softcap', request.softcap);
  struct.set('causal', request.causal ? 1 : 0);
  struct.set('window_left', request.window[0]);
  struct.set('window_right', request.window[1]);
  if (request.bias !== undefined) {
    give('bias', request.bias.data);
    struct.setAll('bias_strides', request.bias.strides);
  }
  if (request.mask !== undefined) {
    give('mask', request.mask.data);
    struct.setAll('mask_strides', request.mask.strides);
    struct.set('mask_bits', request.mask.bits === true ? 1 : 0);
  }
  if (request.blockMask !== undefined) {
    struct.set('block_size', request.blockMask.size);
    give('block_rows', request.blockMask.rows);
    give('block_columns', request.blockMask.columns);
  }
  give('key_padding_mask', request.keyPaddingMask);
  give('kv_lengths', request.kvLengths);
  give('q_lengths', request.qLengths);
  give('causal_offsets', request.causalOffsets);
  give('alibi_slopes', request.alibiSlopes);
  give('sinks', request.sinks);
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
    if (!all) give('weight_heads', request.weightHeads as Int32Array);
    outputs.push({ field: 'weights', result: 'weights', length: batch * count * queries * keys });
  }
  if (request.scoreStage !== 0) {
    struct.set('score_stage', request.scoreStage);
    outputs.push({ field: 'scores', result: 'scores', length: rows * keys });
  }
  if (request.logSumExp) {
    const packedRows = request.packed && heads * request.packed.queries;
    outputs.push({ field: 'log_sum_exp', result: 'logSumExp', length: packedRows ?? rows });
  }
  return { inputs, outputs };
}

function planAttention(request: AttentionRequest, struct: Struct): Plan {
  const plan = planScores(request, struct);
  plan.inputs.push({ field: 'v', array: request.v });
  const rows = request.packed?.queries ?? request.batch * request.queries;
  const length = rows * request.heads * request.valueDim;
  plan.outputs.push({ field: 'out', result: 'output', length });
  return plan;
}

function planAttentionBackward(request: AttentionBackwardRequest, struct: Struct): Plan {
  const plan = planScores(request, struct);
  const { q, k, v, bias, sinks } = request;
  plan.inputs.push(
    { field: 'v', array: v },
    { field: 'out', array: request.output },
    { field: 'log_sum_exp', array: request.forwardLogSumExp },
    { field: 'd_out', array: request.dOutput },
  );
  plan.outputs.push(
    { field: 'dq', result: 'dq', length: q.length },
    { field: 'dk', result: 'dk', length: k.length },
    { field: 'dv', result: 'dv', length: v.length },
  );
  if (bias !== undefined) {
    plan.outputs.push({ field: 'd_bias', result: 'dBias', length: bias.data.length });
  }
  if (sinks !== undefined) {
    plan.outputs.push({ field: 'd_sinks', result: 'dSinks', length: sinks.length });
  }
  return plan;
}

// What forward and backward pass have in common.
function planScores(request: Omit<AttentionRequest, 'op'>, struct: Struct): Plan {
  const plan = planSettings(request, struct);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setAll('q_strides', request.qStrides);
  struct.setAll('k_strides', request.kStrides);
  struct.setAll('v_strides', request.vStrides);
  struct.setAll('out_strides', request.outStrides);
  plan.inputs.push({ field: 'q', array: request.q }, { field: 'k', array: request.k });
  const { packed } = request;
  if (packed !== undefined) {
    plan.inputs.push(
      { field: 'q_starts', array: packed.qStarts },
      { field: 'k_starts', array: packed.kStarts },
    );
    struct.setAll('log_sum_exp_strides', [0, packed.queries, 1]);
  }
  return plan;
}

function planCacheStep(request: CacheStepRequest, struct: Struct): Plan {
  const plan = planSettings(request, struct);
  struct.set('kv_heads', request.kvHeads);
  struct.set('head_dim', request.headDim);
  struct.set('value_dim', request.valueDim);
  struct.set('scale', request.scale);
  struct.setAll('k_strides', request.kStrides);
  struct.setAll('v_strides', request.vStrides);
  plan.inputs.push({ field: 'k', array: request.k }, { field: 'v', array: request.v });
  if (request.q !== undefined) {
    struct.setAll('q_strides', request.qStrides as Strides);
    struct.setAll('out_strides', request.outStrides as Strides);
    plan.inputs.push({ field: 'q', array: request.q });
    const length = request.batch * request.heads * request.queries * request.valueDim;
    plan.outputs.push({ field: 'out', result: 'output', length });
  }
  return plan;
}

function planRotary(request: RotaryRequest, struct: Struct): Plan {
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
  struct.setAll('x_strides', request.strides);
  struct.setAll('y_strides', request.strides);
  const inputs: Input[] = [{ field: 'x', array: request.x }];
  if (positions !== undefined) {
    struct.set('row_positions_batch', positions.batchStride);
    inputs.push({ field: 'row_positions', array: positions.data });
  }
  if (tables !== undefined) {
    struct.set('table_rows', tables.rows);
    inputs.push({ field: 'cos', array: tables.cos }, { field: 'sin', array: tables.sin });
  }
  return {
    inputs,
    outputs: [{ field: 'y', result: 'output', length: batch * heads * rows * size }],
  };
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

function planLayerForward(request: LayerForwardRequest, struct: Struct): Plan {
  const plan = planSettings(request, struct);
  const { batch, queries, keys, outputDim } = request;
  plan.inputs.push(
    { field: 'call.query', array: request.query },
    { field: 'call.key', array: request.key },
    { field: 'call.value', array: request.value },
  );
  plan.outputs.push({
    field: 'call.output',
    result: 'output',
    length: batch * queries * outputDim,
  });
  if (request.averageWeights) {
    const length = batch * queries * keys;
    plan.outputs.push({ field: 'call.average_weights', result: 'averageWeights', length });
  }
  return plan;
}

// Names put together once, not at every call.
const scopes = (['source', 'target', 'memory'] as const).map((scope) => ({
  scope,
  maskField: `${scope}_scope.mask`,
  maskStrides: `${scope}_scope.mask_strides`,
  biasField: `${scope}_scope.bias`,
  biasStrides: `${scope}_scope.bias_strides`,
}));
