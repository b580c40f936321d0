// WebGPU: from a request to the steps of a call and to what will stand where once they have run. Start reading at addRequest.
import { residentOf } from '../resident.js';
import type {
  AttentionRequest,
  AttentionSettings,
  LayerConfig,
  LayerForwardRequest,
  LinearRequest,
  MergeRequest,
  Response,
} from '../request.js';
import {
  addAttention,
  pipelinesOf,
  planAttention,
  type AttentionSizes,
  type AttentionSlices,
} from './attention.js';
import type { Slice } from './buffers.js';
import type { Call } from './call.js';
import { addLayer, innerAttention, type DeviceParameters } from './layer.js';
import { addLinear } from './linear.js';
import { addMerge } from './merge.js';
import type { Pipelines } from './pipelines.js';
import type { DeviceLimits } from './plan.js';
import type { DeviceTensor } from './tensors.js';

/** What the GPU computes. */
export type GpuRequest = AttentionRequest | LayerForwardRequest | LinearRequest | MergeRequest;

export interface Context {
  limits: DeviceLimits;
  pipelines: Pipelines;
}

/** A layer's configuration and parameters, for its calls. */
export interface HeldLayer {
  config: LayerConfig;
  parameters: DeviceParameters;
}

/** `length` floats that begin at byte `offset`. */
export interface Made {
  name: keyof Response;
  slice: Slice;
  offset: number;
  length: number;
}

export function bind(call: Call, array: Float32Array): Slice {
  const resident = residentOf(array);
  return resident === undefined ? call.upload(array) : (resident as DeviceTensor).slice;
}

function bindAll(
  call: Call,
  arrays: readonly [Float32Array, Float32Array, Float32Array],
): [Slice, Slice, Slice] {
  const bound = new Map<Float32Array, Slice>();
  return arrays.map((array) => {
    const slice = bound.get(array) ?? bind(call, array);
    bound.set(array, slice);
    return slice;
  }) as [Slice, Slice, Slice];
}

/** Adds the steps. */
export async function addRequest(
  context: Context,
  call: Call,
  request: GpuRequest,
  layer: HeldLayer | undefined,
): Promise<Made[]> {
  switch (request.op) {
    case 'attention': {
      const { q, k, v } = request;
      const { batch, heads, queries, valueDim } = request;
      const slices = await addAttentionOf(context, call, request, () => bindAll(call, [q, k, v]));
      return madeOf(request, slices, batch * heads * queries * valueDim);
    }
    case 'layerForward':
      return addLayerOf(context, call, request, layer as HeldLayer);
    case 'linear':
      return addLinearOf(context, call, request);
    case 'mergeAttention':
      return addMergeOf(context, call, request);
  }
}

/** The tensors are bound by `tensors`, inside the call's error scopes. */
export async function addAttentionOf(
  { limits, pipelines }: Context,
  call: Call,
  sizes: AttentionSizes,
  tensors: () => [Slice, Slice, Slice],
): Promise<AttentionSlices> {
  const plan = planAttention(sizes, limits);
  const made = await pipelinesOf(plan, sizes, pipelines);
  return call.guard(() => addAttention(call, made, sizes, tensors(), plan, limits));
}

async function addLayerOf(
  { limits, pipelines }: Context,
  call: Call,
  request: LayerForwardRequest,
  { config, parameters }: HeldLayer,
): Promise<Made[]> {
  const sizes = innerAttention(config, request);
  const plan = planAttention(sizes, limits);
  const [attention, linear, pointwise] = await Promise.all([
    pipelinesOf(plan, sizes, pipelines),
    pipelines.get('linear'),
    pipelines.get('pointwise'),
  ]);
  const { batch, queries, outputDim, query, key, value } = request;
  const slices = call.guard(() =>
    addLayer(
      call,
      { attention, linear, pointwise },
      config,
      request,
      bindAll(call, [query, key, value]),
      parameters.slices,
      plan,
      limits,
    ),
  );
  const made = madeOf(sizes, slices, batch * queries * outputDim);
  const { averageWeights } = slices;
  if (averageWeights === undefined) return made;
  const length = batch * queries * request.keys;
  return [
    ...made.filter(({ name }) => name !== 'weights'),
    { name: 'averageWeights', slice: averageWeights, offset: 0, length },
  ];
}

async function addLinearOf(
  { limits, pipelines }: Context,
  call: Call,
  request: LinearRequest,
): Promise<Made[]> {
  const linear = await pipelines.get('linear');
  const slice = call.guard(() => {
    const bias = request.bias === undefined ? undefined : call.upload(request.bias);
    const x = bind(call, request.x);
    return addLinear(call, linear, request, x, bind(call, request.kernel), bias, limits);
  });
  return [{ name: 'output', slice, offset: 0, length: request.rows * request.out }];
}

async function addMergeOf(
  { limits, pipelines }: Context,
  call: Call,
  request: MergeRequest,
): Promise<Made[]> {
  const pipeline = await pipelines.get('mergeParts');
  const { output, logSumExp } = call.guard(() => {
    const parts = request.outputs.map(
      (array, n) => [bind(call, array), bind(call, request.logSumExps[n] as Float32Array)] as const,
    );
    return addMerge(call, pipeline, request, parts, limits);
  });
  const rows = request.batch * request.heads * request.rows;
  return [
    { name: 'output', slice: output, offset: 0, length: rows * request.size },
    { name: 'logSumExp', slice: logSumExp, offset: 0, length: rows },
  ];
}

/** What of an attention's arrays was asked for. */
export function madeOf(
  settings: AttentionSettings,
  { output, weights, scores, stats, logSumExpAt }: AttentionSlices,
  outputLength: number,
): Made[] {
  const { batch, heads, queries, keys, weightHeads } = settings;
  const rows = batch * heads * queries;
  const made: Made[] = [{ name: 'output', slice: output, offset: 0, length: outputLength }];
  if (weights !== undefined) {
    const slots = weightHeads === 'all' ? heads : (weightHeads as Int32Array).length;
    const length = batch * slots * queries * keys;
    made.push({ name: 'weights', slice: weights, offset: 0, length });
  }
  if (scores !== undefined)
    made.push({ name: 'scores', slice: scores, offset: 0, length: rows * keys });
  if (settings.logSumExp)
    made.push({ name: 'logSumExp', slice: stats, offset: logSumExpAt, length: rows });
  return made;
}
