// WebGPU: the driver of a matrix product, y = x · kernel (+ bias).
import type { Obstacle } from '../backend/backend.js';
import type { Slice } from './buffers.js';
import type { Call } from './call.js';
import type { Pipeline } from './pipelines.js';
import type { LinearRequest } from '../request.js';
import { arraysOfLinear, whyTooLarge } from './array-bytes.js';
import { planLinear, type DeviceLimits } from './plan.js';

export interface LinearSizes {
  rows: number;
  in: number;
  out: number;
}

const paramsBytes = 256;

/** What keeps a product from the GPU, in whatever pieces, or undefined. */
export function whyNotLinear(request: LinearRequest, limits: DeviceLimits): Obstacle | undefined {
  if (request.rows * request.out === 0) return { reason: 'there is nothing to compute' };
  return whyTooLarge(arraysOfLinear(request, 1), limits);
}

/** How many rows a kernel may see at once, at least 1. */
export function linearPieceRows(
  { in: width, out, rows }: Pick<LinearRequest, 'in' | 'out' | 'rows'>,
  { bindingBytes }: DeviceLimits,
): number {
  const most = Math.floor(bindingBytes / 4 / Math.max(width, out, 1));
  return Math.min(Math.max(most, 1), rows);
}

/** Rows of each batch whose first `lengths[batch]` (u32) are kept; the others become 0. */
export interface KeptRows {
  batchRows: number;
  lengths: Slice;
}

/** x [rows,in], kernel [in,out], bias [out]. All of rows and out are at least 1. */
export function addLinear(
  call: Call,
  pipeline: Pipeline,
  sizes: LinearSizes,
  x: Slice,
  kernel: Slice,
  bias: Slice | undefined,
  limits: DeviceLimits,
  kept?: KeptRows,
): Slice {
  const { rows, out } = sizes;
  const y = call.take('storage', rows * out * 4);
  const dispatches = planLinear(rows, sizes.in, out, limits);
  const words = new Uint32Array((dispatches.length * paramsBytes) / 4);
  dispatches.forEach(({ first, end, x: gridX }, i) => {
    const params = [
      rows,
      sizes.in,
      out,
      bias === undefined ? 0 : 1,
      kept?.batchRows ?? 0,
      first,
      end,
      gridX,
    ];
    words.set(params, (i * paramsBytes) / 4);
  });
  const { buffer } = call.upload(words, 'uniform');
  const none = bias === undefined || kept === undefined ? call.take('storage', 0) : undefined;
  const slices = {
    1: x,
    2: kernel,
    4: bias ?? (none as Slice),
    5: kept?.lengths ?? (none as Slice),
    6: y,
  };
  dispatches.forEach((dispatch, i) => {
    call.step(pipeline, slices, { buffer, offset: i * paramsBytes, size: paramsBytes }, dispatch);
  });
  return y;
}
