// Between core and caller: responses become tensors, in the shapes that validation worked out.
import { aborted } from './errors.js';
import { toTensor, type GpuTensor } from './gpu-tensor.js';
import type { AttentionSettings, Response } from './request.js';
import { Tensor } from './tensor.js';
import type { ScoreStage } from './options/masking-options.js';
import type { CheckedBackward } from './validation/attention-backward.js';
import type { CheckedCall } from './validation/attention.js';
import { fillOut } from './validation/fixed.js';

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

/** What attention's backward pass returns: gradients in the shapes and layouts of what they belong to. */
export interface AttentionGradients {
  dq: Tensor;
  /** Heads that share a key/value head are summed; a hidden key's gradient is exactly 0. */
  dk: Tensor;
  dv: Tensor;
  /** When a bias was given: summed over the axes along which it was broadcast. */
  dBias?: Tensor;
  /** `[H]`, when sinks were given. */
  dSinks?: Tensor;
}

export function attentionGradients(
  { request, shapes }: CheckedBackward,
  response: Response,
): AttentionGradients {
  const gradients: AttentionGradients = {
    dq: new Tensor(response.dq as Float32Array, shapes.q),
    dk: new Tensor(response.dk as Float32Array, shapes.k),
    dv: new Tensor(response.dv as Float32Array, shapes.v),
  };
  if (response.dBias !== undefined)
    gradients.dBias = new Tensor(response.dBias, shapes.bias as number[]);
  if (response.dSinks !== undefined)
    gradients.dSinks = new Tensor(response.dSinks, [request.heads]);
  return gradients;
}

/** What attention returns with `resident: true`. */
export type ResidentAttentionResult = { [K in keyof AttentionResult]: GpuTensor };

type ResultOn<O> = O extends { readonly resident: true }
  ? ResidentAttentionResult
  : AttentionResult;

type AskedFor<O> =
  | (O extends
      | { readonly returnWeights: true | { readonly heads: readonly number[] } }
      | { readonly averageWeights: true }
      ? 'weights'
      : never)
  | (O extends { readonly returnScores: ScoreStage } ? 'scores' : never)
  | (O extends { readonly returnLogSumExp: true } ? 'logSumExp' : never);

/**
 * What attention returns for options of the type `O`: what they surely ask for is not optional, and with `resident: true` tensors are
 * those of the GPU.
 */
export type AttentionResultOf<O> = O extends unknown
  ? ResultOn<O> & Required<Pick<ResultOn<O>, AskedFor<O>>>
  : never;

/** Options of the type `O`, which is told from the call, without names that `Options` lacks. */
export type OptionsOf<O extends Options, Options> = O & {
  readonly [K in Exclude<keyof O, keyof Options>]: never;
};

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
    result.logSumExp = toTensor(
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
    output: toTensor(response.output as Float32Array, outputShape),
    logSumExp: toTensor(response.logSumExp as Float32Array, logSumExpShape),
  };
}

export function outputTensor(
  response: Response,
  out: Float32Array | undefined,
  shape: number[],
): Tensor {
  const output = response.output as Float32Array;
  if (out === undefined) return toTensor(output, shape);
  if (output !== out) fillOut(out, output);
  return new Tensor(out, shape);
}

/** For calls that cannot be interrupted. */
export function throwIfAborted({
  request,
  signal,
}: Pick<CheckedCall<{ op: string }>, 'request' | 'signal'>): void {
  if (signal?.aborted === true) throw aborted(request.op, signal.reason);
}
