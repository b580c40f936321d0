// Validation: engine.mergeAttention's parts to one request.
import type { TensorLike } from '../tensor-like.js';
import { invalidShape, invalidType, outOfMemory } from '../errors.js';
import type { MergeRequest } from '../request.js';
import { describe } from './arrays.js';
import { type CheckedCall } from './attention.js';
import { readLayout, viewOf } from './views.js';
import { readSignal } from './options.js';
import { readBoolean, readOptions } from './options.js';
import { checkShape, maxSize, product, readTensor } from './shapes.js';

/** What attention over some of the keys gave, with `returnLogSumExp`. */
export interface AttentionPart {
  readonly output: TensorLike;
  /** `[B,H,L]`. */
  readonly logSumExp: TensorLike;
}

/** Options of `engine.mergeAttention`. */
export interface MergeOptions {
  /** What outputs of rank 4 are: `[B,H,L,Dv]` ('bhld', default) or `[B,L,H,Dv]` ('blhd'). */
  layout?: 'bhld' | 'blhd' | undefined;
  /** The results stay on the GPU, as in attention: `GpuTensor`s. */
  resident?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

const optionNames = new Set(['layout', 'resident', 'signal']);

export function readMerge(
  partsValue: readonly AttentionPart[],
  optionsValue: MergeOptions | undefined,
): CheckedCall<MergeRequest> & { logSumExpShape: number[] } {
  if (!Array.isArray(partsValue))
    throw invalidType(
      `parts: an array of { output, logSumExp } wanted, got ${describe(partsValue)}`,
    );
  if (partsValue.length === 0) throw invalidShape('parts: at least one wanted, got none');
  const options = readOptions('options', optionsValue, optionNames);
  const blhd = readLayout(options.layout);
  const parts = partsValue.map((part: unknown, n) => {
    const { output, logSumExp } = readPart(`parts[${n}]`, part);
    return {
      output: readTensor(`parts[${n}].output`, output),
      logSumExp: readTensor(`parts[${n}].logSumExp`, logSumExp),
    };
  });
  const [first] = parts as [(typeof parts)[0]];
  const shape = first.output.shape;
  if (shape.length < 2 || shape.length > 4) {
    throw invalidShape(`parts[0].output: a tensor of rank 2, 3 or 4 wanted, got shape [${shape}]`);
  }
  const lse = first.logSumExp.shape;
  if (lse.length !== 3)
    throw invalidShape(`parts[0].logSumExp: [B,H,L] wanted, got shape [${lse}]`);
  const heads = lse[1] as number;
  const view = viewOf('parts[0].output', shape, blhd, "logSumExp's", Math.max(heads, 1));
  checkShape('parts[0].logSumExp', lse, [view.batch, view.heads, view.rows], '[B,H,L]');
  parts.forEach((part, n) => {
    checkShape(`parts[${n}].output`, part.output.shape, shape, "the first part's");
    checkShape(`parts[${n}].logSumExp`, part.logSumExp.shape, lse, "the first part's");
  });
  const size = product(shape);
  if (size * parts.length > maxSize) throw outOfMemory('mergeAttention', size * parts.length * 4);
  return {
    request: {
      op: 'mergeAttention',
      parts: parts.length,
      batch: view.batch,
      heads: view.heads,
      rows: view.rows,
      size: view.size,
      outputs: parts.map((part) => part.output.data),
      logSumExps: parts.map((part) => part.logSumExp.data),
      strides: view.strides,
      ...(readBoolean('resident', options.resident, false) && { resident: true }),
    },
    out: undefined,
    signal: readSignal('signal', options.signal),
    outputShape: shape,
    logSumExpShape: lse,
  };
}

function readPart(name: string, part: unknown): AttentionPart {
  const { output, logSumExp } = (part ?? {}) as Partial<AttentionPart>;
  if (output === undefined || logSumExp === undefined) {
    const missing = output === undefined ? 'output' : 'logSumExp (give returnLogSumExp: true)';
    throw invalidType(`${name}: { output, logSumExp } wanted, got no ${missing}`);
  }
  return { output, logSumExp };
}
