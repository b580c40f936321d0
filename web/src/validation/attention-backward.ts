// Validation: engine.attentionBackward's arguments to an AttentionBackwardRequest.
import type { TensorLike } from '../tensor-like.js';
import { invalidValue } from '../errors.js';
import type { AttentionBackwardRequest } from '../request.js';
import { readTogether, type AttentionOptions } from './attention.js';
import { readObject } from './options.js';
import { checkShape, readAnyFloats, readTensor } from './shapes.js';

/** A checked call: the request, and the shapes of what comes out. */
export interface CheckedBackward {
  request: AttentionBackwardRequest;
  signal: AbortSignal | undefined;
  shapes: { q: number[]; k: number[]; v: number[]; bias?: number[] };
}

/** Throws for whatever is wrong; what it returns can be computed. */
export function readAttentionBackward(
  dOutputValue: TensorLike,
  qValue: TensorLike,
  kValue: TensorLike,
  vValue: TensorLike,
  outputValue: TensorLike,
  logSumExpValue: TensorLike,
  optionsValue: AttentionOptions | undefined,
): CheckedBackward {
  const dOutput = readTensor('dOutput', dOutputValue);
  const q = readTensor('q', qValue);
  const k = readTensor('k', kValue);
  const v = readTensor('v', vValue);
  const options: AttentionOptions | undefined =
    optionsValue === undefined ? undefined : { ...readObject('options', optionsValue) };
  const bias = options?.bias === undefined ? undefined : readAnyFloats('bias', options.bias);
  if (bias !== undefined) (options as AttentionOptions).bias = bias;
  const call = readTogether(q, k, v, options);
  if (call.out !== undefined) {
    throw invalidValue('out: attentionBackward has several outputs and takes no array for them');
  }
  const output = readTensor('output', outputValue);
  const logSumExp = readTensor('logSumExp', logSumExpValue);
  const { batch, heads, queries, packed } = call.request;
  checkShape('dOutput', dOutput.shape, call.outputShape, 'as output');
  checkShape('output', output.shape, call.outputShape, "as attention's output");
  const rows = packed === undefined ? [batch, heads, queries] : [1, heads, packed.queries];
  checkShape('logSumExp', logSumExp.shape, rows, '[B,H,L]');
  const { weightHeads: _, ...request } = call.request;
  const shapes: CheckedBackward['shapes'] = { q: q.shape, k: k.shape, v: v.shape };
  if (bias !== undefined) shapes.bias = bias.shape;
  return {
    request: {
      ...request,
      op: 'attentionBackward',
      scoreStage: 0,
      logSumExp: false,
      output: output.data,
      forwardLogSumExp: logSumExp.data,
      dOutput: dOutput.data,
    },
    signal: call.signal,
    shapes,
  };
}
