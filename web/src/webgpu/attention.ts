// WebGPU: the driver of attention: from a request and bound inputs to steps of a call. Start reading at addAttention.
import type { Obstacle } from '../backend/backend.js';
import { outOfMemory } from '../errors.js';
import { whyNotOnGpu } from '../options/settings.js';
import type { AttentionRequest } from '../request.js';
import { arraysOfAttention, whyTooLarge } from './array-bytes.js';
import type { Slice } from './buffers.js';
import type { Call } from './call.js';
import { callParams, Extras } from './inputs.js';
import { isHalf, type Form } from './forms.js';
import { attentionName, type Pipeline, type Pipelines, type PipelineName } from './pipelines.js';
import {
  planAttention,
  planHalf,
  planMatrix,
  type AttentionPlan,
  type DeviceLimits,
  type Dispatch,
} from './plan.js';
import { weightsStage } from './shaders/matrix.js';
import { paramsBytes, writeParams, type Params } from './shaders/params.js';
import { tiles } from './shaders/tile.js';
import { fitsWhole, whyNotSplit } from './split.js';

/** Sizes, strides and options of an attention; its tensors are on the device already. */
export type AttentionSizes = Omit<AttentionRequest, 'q' | 'k' | 'v' | 'op'>;

export interface AttentionSlices {
  output: Slice;
  weights: Slice | undefined;
  scores: Slice | undefined;
  /** [B,H,L] floats that begin at byte `logSumExpAt`. */
  stats: Slice;
  logSumExpAt: number;
}

/** The pipelines that a plan needs, made; the attention kernel in the form that is fastest here. */
export async function pipelinesOf(
  plan: AttentionPlan,
  request: AttentionSizes,
  pipelines: Pipelines,
): Promise<
  Record<
    'attention' | 'merge' | 'matrix' | 'toHalf',
    Awaited<ReturnType<Pipelines['get']>> | undefined
  >
> {
  const form = (await pipelines.forms?.of(plan.tile, plan.vectors, request)) ?? 'baseline';
  return pipelinesOfForm(form, plan, request, pipelines);
}

/** The same for a given form. */
export async function pipelinesOfForm(
  form: Form,
  plan: AttentionPlan,
  request: AttentionSizes,
  pipelines: Pipelines,
): ReturnType<typeof pipelinesOf> {
  const get = (wanted: boolean, pipeline: PipelineName) =>
    wanted ? pipelines.get(pipeline) : undefined;
  const [attention, merge, matrix, toHalf] = await Promise.all([
    get(true, attentionName(form, plan.tile, plan.vectors)),
    get(plan.splits > 1, plan.tile === tiles.tall ? 'mergeTall' : 'mergeFlat'),
    get(request.weightHeads !== undefined || request.scoreStage !== 0, 'matrix'),
    get(isHalf(form), 'toHalf'),
  ]);
  return { attention, merge, matrix, toHalf };
}

export type AttentionPipelines = Awaited<ReturnType<typeof pipelinesOf>>;

/** What the kernels are given besides the settings of the table of options. */
export const attentionFields: ReadonlySet<string> = new Set([
  'op',
  'isPlain',
  'batch',
  'heads',
  'queries',
  'keys',
  'kvHeads',
  'headDim',
  'valueDim',
  'scale',
  'q',
  'k',
  'v',
  'qStrides',
  'kStrides',
  'vStrides',
  'outStrides',
] satisfies (keyof AttentionRequest)[]);

/** What keeps a call from this device, or undefined. In pieces where it has to be. */
export function whyNotAttention(
  request: AttentionRequest,
  limits: DeviceLimits,
): Obstacle | undefined {
  const { batch, heads, queries, keys, valueDim } = request;
  if (batch * heads * queries * keys * valueDim === 0)
    return { reason: 'there is nothing to compute' };
  const reason = whyNotOnGpu(request, attentionFields);
  if (reason !== undefined) return { reason };
  return fitsWhole(request, limits.bindingBytes)
    ? whyTooLarge(arraysOfAttention(request), limits)
    : whyNotSplit(request, limits);
}

/** Every size is at least 1, but headDim. Adds the steps; the slices hold what they say once those have run. */
export function addAttention(
  call: Call,
  { attention, merge, matrix, toHalf }: AttentionPipelines,
  request: AttentionSizes,
  [q, k, v]: readonly [Slice, Slice, Slice],
  plan: AttentionPlan,
  limits: DeviceLimits,
): AttentionSlices {
  const { batch, heads, queries, keys, valueDim } = request;
  const rows = batch * heads * queries;
  const extras = new Extras();
  const shared = callParams(request, plan, extras);
  const wantedHeads =
    request.weightHeads === 'all' || request.weightHeads === undefined
      ? Int32Array.from({ length: heads }, (_, h) => h)
      : request.weightHeads;
  const allHeadsAt = extras.integers(Int32Array.from({ length: heads }, (_, h) => h));
  const wantedHeadsAt = extras.integers(wantedHeads);
  if (extras.byteLength > limits.bindingBytes)
    throw outOfMemory('webgpu', extras.byteLength, limits.bindingBytes);

  const bound: Record<number, Slice> = {
    4: request.bias === undefined ? call.take('storage', 0) : call.upload(request.bias.data),
    5: call.upload(extras.array()),
  };
  const output = call.take('storage', rows * valueDim * 4);
  const stats = call.take('storage', rows * 12);
  const uniforms = new Uniforms();

  const sums = plan.splits > 1 ? call.take('storage', plan.sumFloats * 4) : output;
  const parts = plan.splits > 1 ? call.take('storage', plan.partFloats * 4) : stats;
  const dispatches: [Dispatch, Params, (uniform: GPUBufferBinding) => void][] = [];
  const add = (
    pipeline: AttentionPipelines['attention'],
    slices: Record<number, Slice>,
    dispatch: Dispatch,
    params: Partial<Params>,
  ): void => {
    if (pipeline === undefined) throw new Error('a pipeline was not asked for');
    const all: Params = {
      ...shared,
      ...{ stage: 0, slots: 0, heads_at: 0 },
      ...params,
      first: dispatch.first,
      end: dispatch.end,
      grid_x: dispatch.x,
    };
    dispatches.push([
      dispatch,
      all,
      (uniform) => call.step(pipeline, { ...bound, ...slices }, uniform, dispatch),
    ]);
  };
  const half = (slice: Slice): Slice =>
    toHalf === undefined ? slice : addHalf(call, toHalf, slice, limits);
  const [qRead, kRead] = [half(q), half(k)];
  const vRead = v === k ? kRead : half(v);
  for (const pass of plan.passes) {
    const params = { first_unit: pass.firstUnit, pass_units: pass.units };
    for (const dispatch of pass.dispatches)
      add(attention, { 1: qRead, 2: kRead, 3: vRead, 6: sums, 7: parts }, dispatch, params);
    for (const dispatch of pass.merges)
      add(merge, { 1: sums, 2: parts, 6: output, 7: stats }, dispatch, params);
  }

  const addMatrix = (slots: number, stage: number, heads_at: number): Slice => {
    const made = call.take('storage', batch * slots * queries * keys * 4);
    const row_tiles = Math.ceil(queries / (tiles.tall.threadsY * tiles.tall.threadRows));
    for (const dispatch of planMatrix({ ...request }, slots, limits))
      add(matrix, { 1: q, 2: k, 3: stats, 6: made }, dispatch, {
        stage,
        slots,
        heads_at,
        row_tiles,
      });
    return made;
  };
  const weights =
    request.weightHeads !== undefined && wantedHeads.length > 0
      ? addMatrix(wantedHeads.length, weightsStage, wantedHeadsAt)
      : undefined;
  const scores =
    request.scoreStage === 0 ? undefined : addMatrix(heads, request.scoreStage, allHeadsAt);

  for (const [, params] of dispatches) uniforms.add(params);
  const uniform = uniforms.upload(call);
  dispatches.forEach(([, , step], i) => step(uniform(i)));
  return { output, weights, scores, stats, logSumExpAt: rows * 8 };
}

/** A copy of an array of floats as halves. */
function addHalf(call: Call, pipeline: Pipeline, slice: Slice, limits: DeviceLimits): Slice {
  const vectors = slice.bytes / 16;
  const halves = call.take('storage', vectors * 8);
  for (const dispatch of planHalf(vectors, limits)) {
    const { buffer } = call.upload(
      Uint32Array.of(dispatch.first, dispatch.end, dispatch.x, vectors),
      'uniform',
    );
    call.step(pipeline, { 1: slice, 6: halves }, { buffer, offset: 0, size: 16 }, dispatch);
  }
  return halves;
}

// One buffer of all dispatches' params.
class Uniforms {
  readonly #all: Params[] = [];

  add(params: Params): void {
    this.#all.push(params);
  }

  upload(call: Call): (index: number) => GPUBufferBinding {
    const words = new Uint32Array((this.#all.length * paramsBytes) / 4);
    this.#all.forEach((params, i) => writeParams(words.buffer, (i * paramsBytes) / 4, params));
    const { buffer } = call.upload(words, 'uniform');
    return (index) => ({ buffer, offset: index * paramsBytes, size: paramsBytes });
  }
}

export { planAttention };
