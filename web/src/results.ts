// Between core and caller: responses become tensors, in the shapes that validation worked out.
import { aborted } from './errors.js';
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
  /** `[B,H,L]`, natural logarithm; `[1,H,L]` of packed sequences. */
  logSumExp?: Tensor;
}

export function attentionResult(
  { request, out, outputShape }: CheckedCall<AttentionSettings>,
  response: Response,
): AttentionResult {
  const { batch, heads, queries, keys } = request;
  const result: AttentionResult = { output: outputTensor(response, out, outputShape) };
  if (response.weights !== undefined && request.weightHeads !== undefined) {
    const count = request.weightHeads === 'all' ? heads : request.weightHeads.length;
    result.weights = new Tensor(response.weights, [batch, count, queries, keys]);
  }
  if (response.averageWeights !== undefined) {
    result.weights = new Tensor(response.averageWeights, [batch, queries, keys]);
  }
  if (response.scores !== undefined)
    result.scores = new Tensor(response.scores, [batch, heads, queries, keys]);
  if (response.logSumExp !== undefined)
    result.logSumExp = new Tensor(
      response.logSumExp,
      request.packed === undefined ? [batch, heads, queries] : [1, heads, request.packed.queries],
    );
  return result;
}

/** What mergeAttention returns. */
export function merged(
  { outputShape, logSumExpShape }: { outputShape: number[]; logSumExpShape: number[] },
  response: Response,
): { output: Tensor; logSumExp: Tensor } {
  return {
    output: new Tensor(response.output as Float32Array, outputShape),
    logSumExp: new Tensor(response.logSumExp as Float32Array, logSumExpShape),
  };
}

export function outputTensor(
  response: Response,
  out: Float32Array | undefined,
  shape: number[],
): Tensor {
  const output = response.output as Float32Array;
  if (out === undefined) return new Tensor(output, shape);
  if (output !== out) out.set(output);
  return new Tensor(out, shape);
}

/** For calls that cannot be interrupted. */
export function throwIfAborted({ request, signal }: CheckedCall<{ op: string }>): void {
  if (signal?.aborted === true) throw aborted(request.op, signal.reason);
}
