// WebGPU: the driver of mergeAttention: parts are merged one after the other.
import type { Obstacle } from '../backend/backend.js';
import type { MergeRequest } from '../request.js';
import type { Slice } from './buffers.js';
import type { Call } from './call.js';
import type { Pipeline } from './pipelines.js';
import { arraysOfMerge, whyTooLarge } from './array-bytes.js';
import { planDispatches, type DeviceLimits } from './plan.js';

const paramsBytes = 256;

/** What keeps a merge from the GPU, or undefined. */
export function whyNotMerge(request: MergeRequest, limits: DeviceLimits): Obstacle | undefined {
  const { batch, heads, rows, size } = request;
  if (batch * heads * rows * size === 0) return { reason: 'there is nothing to compute' };
  return whyTooLarge(arraysOfMerge(request), limits);
}

/** `parts`: the output and log-sum-exps of each. */
export function addMerge(
  call: Call,
  pipeline: Pipeline,
  { batch, heads, rows, size, strides }: MergeRequest,
  parts: readonly (readonly [Slice, Slice])[],
  limits: DeviceLimits,
): { output: Slice; logSumExp: Slice } {
  const all = batch * heads * rows;
  const output = call.take('storage', all * size * 4);
  const logSumExp = call.take('storage', all * 4);
  const dispatches = planDispatches(0, all, size * 4, limits);
  const words = new Uint32Array((parts.length * dispatches.length * paramsBytes) / 4);
  let at = 0;
  for (let part = 0; part < parts.length; part++) {
    for (const { first, end, x } of dispatches) {
      words.set([heads, rows, size, ...strides, part === 0 ? 1 : 0, first, end, x], at);
      at += paramsBytes / 4;
    }
  }
  const { buffer } = call.upload(words, 'uniform');
  let offset = 0;
  for (const [own, sums] of parts) {
    for (const dispatch of dispatches) {
      const slices = { 1: own, 2: sums, 6: output, 7: logSumExp };
      call.step(pipeline, slices, { buffer, offset, size: paramsBytes }, dispatch);
      offset += paramsBytes;
    }
  }
  return { output, logSumExp };
}
