// Between caller and GPU: which side is faster, by times measured on this machine. Pure; webgpu/measure.ts measures.
import { residentOf } from '../resident.js';
import type { ComputeRequest } from '../request.js';

/**
 * How long a call takes: a fixed time, its bytes, and its multiply-adds. Measured when the engine starts, or given with
 * `createEngine({ gpuCost })`.
 */
export interface CostModel {
  /** A call on the GPU that does nothing: launch and the way back. */
  gpuCallMs: number;
  uploadBytesPerMs: number;
  downloadBytesPerMs: number;
  /** Multiply-adds a millisecond. */
  gpuWorkPerMs: number;
  cpuCallMs: number;
  cpuWorkPerMs: number;
}

/** The names of all of a model's numbers. */
export const costFields = [
  'gpuCallMs',
  'uploadBytesPerMs',
  'downloadBytesPerMs',
  'gpuWorkPerMs',
  'cpuCallMs',
  'cpuWorkPerMs',
] as const satisfies readonly (keyof CostModel)[];

// The GPU must win clearly: what it is measured by varies, and the CPU's way is the one without surprises.
const margin = 1.25;

export interface Estimate {
  gpuMs: number;
  cpuMs: number;
}

export function estimate(request: ComputeRequest, model: CostModel): Estimate {
  const { work, inputs, outputs } = sizeOf(request);
  return {
    gpuMs:
      model.gpuCallMs +
      inputs / model.uploadBytesPerMs +
      outputs / model.downloadBytesPerMs +
      work / model.gpuWorkPerMs,
    cpuMs: model.cpuCallMs + work / model.cpuWorkPerMs,
  };
}

export function gpuWins({ gpuMs, cpuMs }: Estimate): boolean {
  return gpuMs * margin < cpuMs;
}

/** Multiply-adds, and bytes that would have to cross to and from the GPU. */
function sizeOf(request: ComputeRequest): { work: number; inputs: number; outputs: number } {
  let inputs = 0;
  const seen = new Set<unknown>();
  for (const value of Object.values(request) as unknown[]) {
    if (!ArrayBuffer.isView(value) || seen.has(value) || residentOf(value) !== undefined) continue;
    seen.add(value);
    inputs += value.byteLength;
  }
  if (request.op === 'linear') {
    const { rows, out } = request;
    return { work: rows * request.in * out, inputs, outputs: rows * out * 4 };
  }
  if (request.op !== 'attention' && request.op !== 'layerForward')
    return { work: 0, inputs, outputs: 0 };
  inputs += (request.bias?.data.byteLength ?? 0) + (request.mask?.data.byteLength ?? 0);
  const { batch, heads, queries, keys } = request;
  const scores = batch * heads * queries * keys;
  const matrices = (request.weightHeads === undefined ? 0 : 1) + (request.scoreStage === 0 ? 0 : 1);
  let outputs = matrices * scores * 4;
  let work: number;
  if (request.op === 'attention') {
    work = scores * (request.headDim + request.valueDim);
    outputs += batch * heads * queries * request.valueDim * 4;
  } else {
    // The request has the output's width only; the projections are taken to be as wide.
    const width = request.outputDim;
    work = 2 * batch * (queries + keys) * width * width + 2 * batch * queries * keys * width;
    outputs += batch * queries * width * 4;
  }
  return { work, inputs, outputs: request.resident === true ? 0 : outputs };
}
