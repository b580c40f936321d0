// Wasm: each computation's request as the fields of its struct, the arrays that go in and the arrays that come out. Only
// this file knows how requests map to the core's structs; core.ts does the rest the same way for all.
import {
  type AttentionBackwardRequest,
  type AttentionRequest,
  type CacheStepRequest,
  type ComputeRequest,
  type LayerForwardRequest,
  type Operation,
  type RotaryRequest,
  type Strides,
  type TransformerBatch,
  type TransformerDecodeRequest,
  type TransformerStepRequest,
} from '../request.js';
import type { Bindings, Layout } from './glue.js';
import { stageSettings } from '../options/settings.js';
import { Staging } from './staging.js';
import { ropeArrays, setRope } from './rope.js';
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
  /** Not an address: what weight decay leaves out of a model. */
  decays(request: TransformerStepRequest): Uint8Array | undefined;
  cache(request: CacheStepRequest): number;
  decoding(request: TransformerDecodeRequest): number;
}

/** Sets the struct's numbers, and says where each array is to lie. */
export function stagingOf(request: ComputeRequest, struct: Struct, of: Addresses): Staging {
  const staging = new Staging(struct);
  switch (request.op) {
    case 'attention':
      stageAttention(request, staging);
      break;
    case 'attentionBackward':
      stageAttentionBackward(request, staging);
      break;
    case 'layerForward':
      staging.set('layer', of.layer(request.layer));
      stageLayerForward(request, staging);
      break;
    case 'cacheStep':
      staging.set('cache', of.cache(request));
      stageCacheStep(request, staging);
      break;
    case 'rotaryEmbedding':
      stageRotary(request, staging);
      break;
    case 'mergeAttention': {
      const { parts, batch, heads, rows, size } = request;
      staging.set('parts', parts);
      staging.set('batch', batch);
      staging.set('heads', heads);
      staging.set('rows', rows);
      staging.set('size', size);
      staging.setStrides('strides', request.strides);
      const length = batch * heads * rows;
      staging.inputJoined('outputs', request.outputs);
      staging.inputJoined('log_sum_exps', request.logSumExps);
      staging.output('out', 'output', length * size);
      staging.output('log_sum_exp', 'logSumExp', length);
      break;
    }
    case 'transformerForward': {
      staging.set('model', of.model(request.model));
      stageBatch(request, staging);
      staging.output('logits', 'output', request.logits);
      if (request.weights > 0) {
        staging.output('weights', 'weights', request.weights);
      }
      break;
    }
    case 'transformerStep': {
      staging.set('model', of.model(request.model));
      for (const [field, value] of Object.entries(request.settings)) staging.set(field, value);
      staging.input('decays', of.decays(request));
      stageBatch(request, staging);
      staging.output('result', 'output', stepResults);
      break;
    }
    case 'transformerDecode':
      staging.set('model', of.model(request.model));
      staging.set('decoding', of.decoding(request));
      stageDecode(request, staging);
      break;
    case 'linear': {
      const { rows, out, x, kernel, bias } = request;
      staging.set('rows', rows);
      staging.set('in', request.in);
      staging.set('out', out);
      staging.input('x', x);
      staging.input('kernel', kernel);
      staging.input('bias', bias);
      staging.output('y', 'output', rows * out);
      break;
    }
    case 'embedding': {
      const { rows, vocabulary, width, ids, table } = request;
      staging.set('rows', rows);
      staging.set('vocabulary', vocabulary);
      staging.set('width', width);
      staging.input('ids', ids);
      staging.input('table', table);
      staging.output('y', 'output', rows * width);
      break;
    }
    case 'positionalEncoding': {
      const { length, width } = request;
      staging.set('length', length);
      staging.set('width', width);
      staging.output('y', 'output', length * width);
      break;
    }
  }
  return staging;
}

// Loss, counted and correct rows, norm of the gradients, whether they were applied; then the letters of a name.
const stepResults = 5 + 96;

function stageBatch(request: TransformerBatch, staging: Staging): void {
  staging.set('batch', request.batch);
  staging.set('source_length', request.sourceLength);
  staging.set('target_length', request.targetLength);
  staging.set('ignored_label', -1);
  staging.set('target_open', request.targetOpen === true ? 1 : 0);
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
    if (mask !== undefined) staging.setStrides(maskStrides, mask.strides);
    staging.input(biasField, bias?.data);
    if (bias !== undefined) staging.setStrides(biasStrides, bias.strides);
  }
}

function stageDecode(request: TransformerDecodeRequest, staging: Staging): void {
  staging.set('source_length', request.sourceLength);
  staging.set('target_length', request.targetLength);
  staging.input('target', request.target as Int32Array);
  const { source, sourceVectors, sourceMask } = request;
  staging.input('source', source);
  staging.input('source_vectors', sourceVectors);
  staging.input('source_mask', sourceMask);
  staging.output('logits', 'output', request.logits);
}

function stageAttention(request: AttentionRequest, staging: Staging): void {
  stageScores(request, staging);
  staging.input('v', request.v);
  const rows = request.packed?.queries ?? request.batch * request.queries;
  const length = rows * request.heads * request.valueDim;
  staging.output('out', 'output', length);
}

function stageAttentionBackward(request: AttentionBackwardRequest, staging: Staging): void {
  stageScores(request, staging);
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
function stageScores(request: Omit<AttentionRequest, 'op'>, staging: Staging): void {
  stageSettings(request, staging, request.isPlain === true);
  staging.set('kv_heads', request.kvHeads);
  staging.set('head_dim', request.headDim);
  staging.set('value_dim', request.valueDim);
  staging.set('scale', request.scale);
  staging.setStrides('q_strides', request.qStrides);
  staging.setStrides('k_strides', request.kStrides);
  staging.setStrides('v_strides', request.vStrides);
  staging.setStrides('out_strides', request.outStrides);
  staging.input('q', request.q);
  staging.input('k', request.k);
}

function stageCacheStep(request: CacheStepRequest, staging: Staging): void {
  stageSettings(request, staging, false);
  staging.set('kv_heads', request.kvHeads);
  staging.set('head_dim', request.headDim);
  staging.set('value_dim', request.valueDim);
  staging.set('scale', request.scale);
  if (request.k === undefined) {
    staging.set('read_only', 1);
  } else {
    staging.setStrides('k_strides', request.kStrides as Strides);
    staging.setStrides('v_strides', request.vStrides as Strides);
    staging.input('k', request.k);
    staging.input('v', request.v);
  }
  staging.input('positions', request.positions);
  if (request.q !== undefined) {
    staging.setStrides('q_strides', request.qStrides as Strides);
    staging.setStrides('out_strides', request.outStrides as Strides);
    staging.input('q', request.q);
    const length = request.batch * request.heads * request.queries * request.valueDim;
    staging.output('out', 'output', length);
  }
}

function stageRotary(request: RotaryRequest, staging: Staging): void {
  const { batch, heads, rows, size, positions } = request;
  staging.set('batch', batch);
  staging.set('heads', heads);
  staging.set('rows', rows);
  staging.set('size', size);
  setRope(staging, request);
  for (const [field, array] of ropeArrays(request)) staging.input(field, array);
  staging.set('position', request.offset);
  staging.setStrides('x_strides', request.strides);
  staging.setStrides('y_strides', request.strides);
  staging.input('x', request.x);
  if (positions !== undefined) {
    staging.set('row_positions_batch', positions.batchStride);
    staging.input('row_positions', positions.data);
  }
  staging.output('y', 'output', batch * heads * rows * size);
}

function stageLayerForward(request: LayerForwardRequest, staging: Staging): void {
  stageSettings(request, staging, false);
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
