// Wasm: each computation's request as the fields of its struct, the arrays that go in and the arrays that come out. Only
// this file knows how requests map to the core's structs; core.ts does the rest the same way for all.
import type {
  AttentionRequest,
  AttentionSettings,
  ComputeRequest,
  LayerForwardRequest,
  Response,
} from '../request.js';
import type { Layout } from './glue.js';
import { Struct, type Fields } from './struct.js';

type InputArray = Float32Array | Int32Array | Uint8Array;

/** A call before it is staged: numbers, arrays in by the field that is to point at them, and lengths of arrays out. */
export interface Plan {
  fields: Fields;
  inputs: [field: string, array: InputArray][];
  outputs: [field: string, result: Exclude<keyof Response, 'parameters'>, length: number][];
}

export type Operation = ComputeRequest['op'];

/** The struct of each operation. */
export function structsOf(layout: Layout): Record<Operation, Struct> {
  return {
    attention: new Struct(layout, 'AttentionArgs'),
    layerForward: new Struct(layout, 'LayerForwardArgs').with(layout, 'call.attention', 'AttentionArgs'),
    linear: new Struct(layout, 'LinearArgs'),
    embedding: new Struct(layout, 'EmbeddingArgs'),
    positionalEncoding: new Struct(layout, 'PositionalEncodingArgs'),
  };
}

/** `layerOf` turns a layer's number into its address, or throws. */
export function planOf(request: ComputeRequest, layerOf: (layer: number) => number): Plan {
  switch (request.op) {
    case 'attention':
      return planAttention(request);
    case 'layerForward':
      return planLayerForward(request, layerOf(request.layer));
    case 'linear': {
      const { rows, out } = request;
      const plan: Plan = {
        fields: { rows, in: request.in, out },
        inputs: [
          ['x', request.x],
          ['kernel', request.kernel],
        ],
        outputs: [['y', 'output', rows * out]],
      };
      if (request.bias !== undefined) plan.inputs.push(['bias', request.bias]);
      return plan;
    }
    case 'embedding': {
      const { rows, vocabulary, width } = request;
      return {
        fields: { rows, vocabulary, width },
        inputs: [
          ['ids', request.ids],
          ['table', request.table],
        ],
        outputs: [['y', 'output', rows * width]],
      };
    }
    case 'positionalEncoding': {
      const { length, width } = request;
      return { fields: { length, width }, inputs: [], outputs: [['y', 'output', length * width]] };
    }
  }
}

function planSettings(request: AttentionSettings): Plan {
  const { batch, heads, queries, keys } = request;
  const fields: Fields = {
    batch,
    heads,
    queries,
    keys,
    softcap: request.softcap,
    causal: request.causal ? 1 : 0,
    window_left: request.window[0],
    window_right: request.window[1],
  };
  const inputs: Plan['inputs'] = [];
  const outputs: Plan['outputs'] = [];
  const pairs = batch * heads * queries;
  for (const name of ['bias', 'mask'] as const) {
    const given = request[name];
    if (given === undefined) continue;
    inputs.push([name, given.data]);
    const { strides } = given;
    fields[`${name}_strides.batch`] = strides[0];
    fields[`${name}_strides.head`] = strides[1];
    fields[`${name}_strides.row`] = strides[2];
    fields[`${name}_strides.column`] = strides[3];
  }
  const optional = [
    ['key_padding_mask', request.keyPaddingMask],
    ['kv_lengths', request.kvLengths],
    ['q_lengths', request.qLengths],
    ['causal_offsets', request.causalOffsets],
    ['alibi_slopes', request.alibiSlopes],
    ['sinks', request.sinks],
  ] as const;
  for (const [field, array] of optional) if (array !== undefined) inputs.push([field, array]);
  if (request.dropout !== undefined) {
    fields.dropout_rate = request.dropout.rate;
    fields.dropout_seed_low = request.dropout.seed[0];
    fields.dropout_seed_high = request.dropout.seed[1];
  }
  if (request.weightHeads !== undefined) {
    const count = request.weightHeads === 'all' ? heads : request.weightHeads.length;
    fields.weight_head_count = count;
    if (request.weightHeads !== 'all') inputs.push(['weight_heads', request.weightHeads]);
    outputs.push(['weights', 'weights', batch * count * queries * keys]);
  }
  if (request.scoreStage !== 0) {
    fields.score_stage = request.scoreStage;
    outputs.push(['scores', 'scores', pairs * keys]);
  }
  if (request.logSumExp) outputs.push(['log_sum_exp', 'logSumExp', pairs]);
  return { fields, inputs, outputs };
}

function planAttention(request: AttentionRequest): Plan {
  const plan = planSettings(request);
  const { fields, inputs, outputs } = plan;
  fields.kv_heads = request.kvHeads;
  fields.head_dim = request.headDim;
  fields.value_dim = request.valueDim;
  fields.scale = request.scale;
  writeStrides(fields, 'q_strides', request.qStrides);
  writeStrides(fields, 'k_strides', request.kStrides);
  writeStrides(fields, 'v_strides', request.vStrides);
  writeStrides(fields, 'out_strides', request.outStrides);
  inputs.push(['q', request.q], ['k', request.k], ['v', request.v]);
  outputs.push(['out', 'output', request.batch * request.heads * request.queries * request.valueDim]);
  return plan;
}

function writeStrides(fields: Fields, name: string, strides: readonly [number, number, number]): void {
  fields[`${name}.batch`] = strides[0];
  fields[`${name}.head`] = strides[1];
  fields[`${name}.row`] = strides[2];
}

function planLayerForward(request: LayerForwardRequest, layer: number): Plan {
  const plan = planSettings(request);
  const { batch, queries, keys } = request;
  plan.fields.layer = layer;
  plan.inputs.push(['call.query', request.query], ['call.key', request.key], ['call.value', request.value]);
  plan.outputs.push(['call.output', 'output', batch * queries * request.outputDim]);
  if (request.averageWeights) plan.outputs.push(['call.average_weights', 'averageWeights', batch * queries * keys]);
  return plan;
}
