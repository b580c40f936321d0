// WebGPU: the driver of a multi-head attention layer: projections, attention, merge and output projection without leaving the
// device. The parameters' copies on the device are made when a layer first runs there.
import type { Obstacle } from '../backend/backend.js';
import { lengthsOf } from '../options/cut.js';
import { whyNotDivided, whyNotOnGpu } from '../options/settings.js';
import type {
  AttentionSettings,
  LayerConfig,
  LayerForwardRequest,
  ParameterArrays,
  RotarySettings,
} from '../request.js';
import type { AttentionSizes, AttentionPipelines, AttentionSlices } from './attention.js';
import { arraysOfLayer, arraysOfResults, whyTooLarge } from './array-bytes.js';
import { addAttention } from './attention.js';
import type { Buffers, Slice } from './buffers.js';
import type { Call } from './call.js';
import { addLinear } from './linear.js';
import type { Pipeline } from './pipelines.js';
import { Pointwise } from './pointwise.js';
import type { AttentionPlan, DeviceLimits } from './plan.js';

// What the drivers are given besides the settings of the table of options.
const fields = new Set<string>([
  'op',
  'batch',
  'heads',
  'queries',
  'keys',
  'layer',
  'outputDim',
  'averageWeights',
  'query',
  'key',
  'value',
] satisfies (keyof LayerForwardRequest)[]);

// What the driver knows of a layer's rope.
const gpuRope = new Set<string>(['base', 'dim', 'interleaved'] satisfies (keyof RotarySettings)[]);

/** What keeps a layer's call from the GPU, in whatever pieces, or undefined. */
export function whyNotLayer(
  config: LayerConfig,
  request: LayerForwardRequest,
  limits: DeviceLimits,
): Obstacle | undefined {
  if (config.score === 'additive') return { reason: "score 'additive' runs on the CPU" };
  const turnedOtherwise = Object.keys(config.rope ?? {}).find((name) => !gpuRope.has(name));
  if (turnedOtherwise !== undefined) return { reason: `rope.${turnedOtherwise} runs on the CPU` };
  const reason = whyNotOnGpu(request, fields);
  if (reason !== undefined) return { reason };
  const batches = layerPieceBatches(config, request, limits);
  const undivided = batches < request.batch ? whyNotDivided(request) : undefined;
  if (undivided !== undefined) return { reason: undivided };
  const piece = { ...request, batch: batches };
  return (
    whyTooLarge(arraysOfLayer(config, piece), limits) ??
    whyTooLarge(arraysOfResults(request, request.outputDim), limits)
  );
}

/** How many batches go at once, at least 1. What is broadcast over the batch does not get smaller. */
export function layerPieceBatches(
  config: LayerConfig,
  request: LayerForwardRequest,
  limits: DeviceLimits,
): number {
  let batches = request.batch;
  const isTooLarge = (batch: number): boolean =>
    whyTooLarge(arraysOfLayer(config, { ...request, batch }), limits) !== undefined;
  while (batches > 1 && isTooLarge(batches)) batches = Math.ceil(batches / 2);
  return batches;
}

/** The attention inside a layer's call. */
export function innerAttention(config: LayerConfig, request: LayerForwardRequest): AttentionSizes {
  const { heads, kvHeads, headDim, valueHeadDim } = config;
  const { queries, keys } = request;
  const settings: AttentionSettings = request;
  const strides = (rows: number, count: number, size: number): [number, number, number] => [
    rows * count * size,
    size,
    count * size,
  ];
  return {
    ...settings,
    // The mean needs those of all heads.
    ...(request.averageWeights && { weightHeads: 'all' as const }),
    kvHeads,
    headDim,
    valueDim: valueHeadDim,
    scale: config.score === 'scaled-dot' ? 1 / Math.sqrt(headDim) : 1,
    qStrides: strides(queries, heads, headDim),
    kStrides: strides(keys, kvHeads, headDim),
    vStrides: strides(keys, kvHeads, valueHeadDim),
    outStrides: strides(queries, heads, valueHeadDim),
  };
}

/** A layer's parameters on the device, counted by reference: calls that began with them end with them. */
export class DeviceParameters {
  readonly #buffers: Buffers;
  readonly slices: (Slice | undefined)[];
  #users = 1;

  constructor(call: Call, buffers: Buffers, parameters: ParameterArrays) {
    this.#buffers = buffers;
    this.slices = parameters.map((array) =>
      array === undefined ? undefined : call.keep(call.upload(array)),
    );
  }

  retain(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users > 0) return;
    for (const slice of this.slices) if (slice !== undefined) this.#buffers.give(slice);
  }
}

/** What a layer's call runs. */
export interface LayerPipelines {
  attention: AttentionPipelines;
  linear: Pipeline;
  pointwise: Pipeline;
}

export interface LayerSlices extends AttentionSlices {
  averageWeights: Slice | undefined;
}

/** Where each batch's query 0 stands among the keys. */
function queryOffsets(request: LayerForwardRequest): Int32Array {
  return Int32Array.from({ length: request.batch }, (_, b) => lengthsOf(request, b).offset);
}

export function addLayer(
  call: Call,
  pipelines: LayerPipelines,
  config: LayerConfig,
  request: LayerForwardRequest,
  [query, key, value]: readonly [Slice, Slice, Slice],
  parameters: readonly (Slice | undefined)[],
  plan: AttentionPlan,
  limits: DeviceLimits,
): LayerSlices {
  const { batch, queries, keys, qLengths } = request;
  const { heads, kvHeads, headDim, valueHeadDim, convolution, rope } = config;
  const pointwise = new Pointwise(call, pipelines.pointwise, limits);
  const project = (x: Slice, rows: number, width: number, columns: number, kind: number): Slice => {
    let input = x;
    const taps = convolution?.kernelSize ?? 1;
    if (convolution !== undefined) {
      const left = convolution.causal ? taps - 1 : Math.floor((taps - 1) / 2);
      input = pointwise.taps(x, { batch, rows, size: width }, taps, left);
    }
    return addLinear(
      call,
      pipelines.linear,
      { rows: batch * rows, in: taps * width, out: columns },
      input,
      parameters[kind] as Slice,
      parameters[kind + 1],
      limits,
    );
  };
  let q = project(query, queries, config.embedDim, heads * headDim, 0);
  let k = project(key, keys, config.keyDim, kvHeads * headDim, 2);
  const v = project(value, keys, config.valueDim, kvHeads * valueHeadDim, 4);
  const qVectors = { batch, rows: queries, heads, size: headDim };
  const kVectors = { batch, rows: keys, heads: kvHeads, size: headDim };
  if (rope !== undefined) {
    q = pointwise.rotate(q, qVectors, rope, queryOffsets(request));
    k = pointwise.rotate(k, kVectors, rope, undefined);
  }
  if (config.score === 'cosine') {
    q = pointwise.normalize(q, qVectors);
    k = pointwise.normalize(k, kVectors);
  }
  const attended = addAttention(
    call,
    pipelines.attention,
    innerAttention(config, request),
    [q, k, v],
    plan,
    limits,
  );
  let mergedHeads = attended.output;
  let width = heads * valueHeadDim;
  if (config.merge === 'sum') {
    mergedHeads = pointwise.sum(mergedHeads, batch * queries, heads, valueHeadDim, 1);
    width = valueHeadDim;
  }
  const output = addLinear(
    call,
    pipelines.linear,
    { rows: batch * queries, in: width, out: config.outputDim },
    mergedHeads,
    parameters[6] as Slice,
    parameters[7],
    limits,
    qLengths === undefined ? undefined : { batchRows: queries, lengths: call.upload(qLengths) },
  );
  const averageWeights = request.averageWeights
    ? pointwise.sum(attended.weights as Slice, batch, heads, queries * keys, 1 / heads)
    : undefined;
  return { ...attended, output, averageWeights };
}
