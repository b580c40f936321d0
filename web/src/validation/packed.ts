// Validation: packed sequences, given as the running sums of their lengths.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { AttentionSettings } from '../request.js';
import type { View } from './views.js';
import { checkBeside } from '../options/settings.js';
import { largest, readAnyIntegers } from './shapes.js';

/** Sizes of the longest sequences, and what says where each one lies; nothing when `options` has no packed sequences. */
export interface Packed {
  sizes: { batch: number; queries: number; keys: number };
  settings: Required<Pick<AttentionSettings, 'qLengths' | 'kvLengths' | 'packed'>>;
}

export function readPacked(options: Record<string, unknown>, q: View, k: View): Packed | undefined {
  const { cuSeqlensQ, cuSeqlensK } = options;
  if (cuSeqlensQ === undefined && cuSeqlensK === undefined) return undefined;
  if (cuSeqlensQ === undefined || cuSeqlensK === undefined) {
    const missing = cuSeqlensQ === undefined ? 'cuSeqlensQ' : 'cuSeqlensK';
    throw invalidType(`${missing}: wanted with the other one, got undefined`);
  }
  checkBeside('packed', options);
  if (q.batch !== 1) throw invalidShape(`q: a batch of 1 wanted with cuSeqlensQ, got ${q.batch}`);
  const queries = readSums('cuSeqlensQ', cuSeqlensQ, q.rows);
  const keys = readSums('cuSeqlensK', cuSeqlensK, k.rows);
  const batch = queries.lengths.length;
  if (keys.lengths.length !== batch) {
    throw invalidShape(
      `cuSeqlensK: ${batch + 1} integers like cuSeqlensQ wanted, got ${keys.lengths.length + 1}`,
    );
  }
  return {
    sizes: { batch, queries: largest(queries.lengths), keys: largest(keys.lengths) },
    settings: {
      qLengths: queries.lengths,
      kvLengths: keys.lengths,
      packed: { qStarts: queries.starts, kStarts: keys.starts, queries: q.rows },
    },
  };
}

function readSums(
  name: string,
  value: unknown,
  total: number,
): { starts: Int32Array; lengths: Int32Array } {
  const { data, shape } = readAnyIntegers(name, value);
  if (shape.length !== 1 || data.length === 0)
    throw invalidShape(`${name}: integers [N + 1] wanted, got shape [${shape}]`);
  const starts = data.slice(0, -1);
  const lengths = starts.map((start, n) => (data[n + 1] as number) - start);
  if (data[0] !== 0) throw invalidValue(`${name}[0]: 0 wanted, got ${data[0]}`);
  lengths.forEach((length, n) => {
    if (length < 0)
      throw invalidValue(
        `${name}[${n + 1}]: at least ${starts[n]}, the one before, wanted, got ${data[n + 1]}`,
      );
  });
  if (data[data.length - 1] !== total) {
    throw invalidValue(
      `${name}: ${total}, the number of rows, wanted at the end, got ${data[data.length - 1]}`,
    );
  }
  return { starts, lengths };
}
