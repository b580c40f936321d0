// Between core and caller: responses become tensors, in the shapes that validation worked out.
import { aborted } from './errors.js';
import { toTensor, type GpuTensor } from './gpu-tensor.js';
import type { AttentionSettings, Response } from './request.js';
import { Tensor } from './tensor.js';
import type { CheckedCall } from './validation/attention.js';

/** What attention returns. */
export interface AttentionResult {
  /** In the inputs' layout. */
  output: Tensor;
  /** `[B,H,L,S]` (with `heads: […]` just those heads), after the softmax, before dropout. */
  weights?: Tensor;
  /** `[B,H,L,S]` at the stage that was asked for. */
  scores?: Tensor;
  /** `[B,H,L]`, natural logarithm. */
  logSumExp?: Tensor;
}

/** What attention returns with `resident: true`. */
export type ResidentAttentionResult = { [K in keyof AttentionResult]: GpuTensor };

export function attentionResult(
  { request, out, outputShape }: CheckedCall<AttentionSettings>,
  response: Response,
): AttentionResult {
  const { batch, heads, queries, keys } = request;
  const result: AttentionResult = { output: outputTensor(response, out, outputShape) };
  if (response.weights !== undefined && request.weightHeads !== undefined) {
    const count = request.weightHeads === 'all' ? heads : request.weightHeads.length;
    result.weights = toTensor(response.weights, [batch, count, queries, keys]);
  }
  if (response.averageWeights !== undefined) {
    result.weights = toTensor(response.averageWeights, [batch, queries, keys]);
  }
  if (response.scores !== undefined)
    result.scores = toTensor(response.scores, [batch, heads, queries, keys]);
  if (response.logSumExp !== undefined)
    result.logSumExp = toTensor(response.logSumExp, [batch, heads, queries]);
  return result;
}

function outputTensor(response: Response, out: Float32Array | undefined, shape: number[]): Tensor {
  const output = response.output as Float32Array;
  if (out === undefined) return toTensor(output, shape);
  out.set(output);
  return new Tensor(out, shape);
}

/** For calls that cannot be interrupted. */
export function throwIfAborted({ request, signal }: CheckedCall<{ op: string }>): void {
  if (signal?.aborted === true) throw aborted(request.op, signal.reason);
}
