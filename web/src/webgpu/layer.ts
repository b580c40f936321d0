// WebGPU: the driver of a multi-head attention layer: projections, attention, merge and output projection without leaving the
// device. The parameters' copies on the device are made when a layer first runs there.
import type {
  AttentionSettings,
  LayerConfig,
  LayerForwardRequest,
  ParameterArrays,
} from '../request.js';
import type { AttentionSizes, AttentionPipelines, AttentionSlices } from './attention.js';
import { addAttention, whyNotSettings } from './attention.js';
import type { Buffers, Slice } from './buffers.js';
import type { Call } from './call.js';
import { addLinear } from './linear.js';
import type { Pipeline } from './pipelines.js';
import { whyTooLarge, type AttentionPlan, type DeviceLimits, type Obstacle } from './plan.js';

/** What keeps a layer from the GPU, or undefined. */
export function whyNotLayer(
  config: LayerConfig,
  request: LayerForwardRequest,
  limits: DeviceLimits,
): Obstacle | undefined {
  if (config.convolution !== undefined) return { reason: "projection 'conv' runs on the CPU" };
  if (config.merge === 'sum') return { reason: "merge 'sum' runs on the CPU" };
  if (config.score === 'cosine' || config.score === 'additive')
    return { reason: `score '${config.score}' runs on the CPU` };
  if (config.rope !== undefined) return { reason: 'rope runs on the CPU' };
  if (request.averageWeights) return { reason: 'averageWeights runs on the CPU' };
  const whyNot = whyNotSettings(request);
  if (whyNot !== undefined) return whyNot;
  const { batch, queries, keys, heads } = request;
  const widest = Math.max(
    batch *
      queries *
      Math.max(
        config.embedDim,
        heads * config.headDim,
        heads * config.valueHeadDim,
        config.outputDim,
      ),
    batch *
      keys *
      Math.max(
        config.keyDim,
        config.valueDim,
        config.kvHeads * Math.max(config.headDim, config.valueHeadDim),
      ),
    config.embedDim * heads * config.headDim,
    heads * config.valueHeadDim * config.outputDim,
  );
  const matrix =
    request.weightHeads !== undefined || request.scoreStage !== 0
      ? batch * heads * queries * keys
      : 0;
  return (
    whyTooLarge('one of the layer’s tensors', widest * 4, limits) ??
    whyTooLarge('the matrix of weights or scores', matrix * 4, limits) ??
    whyTooLarge('bias', request.bias?.data.byteLength ?? 0, limits) ??
    whyTooLarge(
      'mask',
      (request.mask?.data.byteLength ?? 0) + batch * keys + 64 * (batch + heads),
      limits,
    )
  );
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

export function addLayer(
  call: Call,
  pipelines: AttentionPipelines,
  linear: Pipeline,
  config: LayerConfig,
  request: LayerForwardRequest,
  [query, key, value]: readonly [Slice, Slice, Slice],
  parameters: readonly (Slice | undefined)[],
  plan: AttentionPlan,
  limits: DeviceLimits,
): AttentionSlices {
  const { batch, queries, keys, qLengths } = request;
  const { heads, kvHeads, headDim, valueHeadDim } = config;
  const project = (x: Slice, rows: number, width: number, columns: number, kind: number): Slice =>
    addLinear(
      call,
      linear,
      { rows: batch * rows, in: width, out: columns },
      x,
      parameters[kind] as Slice,
      parameters[kind + 1],
      limits,
    );
  const q = project(query, queries, config.embedDim, heads * headDim, 0);
  const k = project(key, keys, config.keyDim, kvHeads * headDim, 2);
  const v = project(value, keys, config.valueDim, kvHeads * valueHeadDim, 4);
  const attended = addAttention(
    call,
    pipelines,
    innerAttention(config, request),
    [q, k, v],
    plan,
    limits,
  );
  const output = addLinear(
    call,
    linear,
    { rows: batch * queries, in: heads * valueHeadDim, out: config.outputDim },
    attended.output,
    parameters[6] as Slice,
    parameters[7],
    limits,
    qLengths === undefined ? undefined : { batchRows: queries, lengths: call.upload(qLengths) },
  );
  return { ...attended, output };
}
