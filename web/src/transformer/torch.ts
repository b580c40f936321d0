// Transformer: parameters from state dicts: of this package's names, and of torch.nn.Transformer, its encoder or its decoder.
import type { TensorLike } from '../tensor-like.js';
import type { CompleteTensors, NamedArray } from '../request.js';
import { checkAttached } from '../validation/fixed.js';
import { readChoice, readOptions } from '../validation/options.js';
import { readTensor } from '../validation/shapes.js';
import { readEntries, widened, type HalfTensorLike } from '../validation/state-dict.js';

/** A state dict: tensors by their names; 16-bit floats also as `{ data: Uint16Array, type: 'float16' | 'bfloat16', shape }`. */
export type TransformerStateDict<T = TensorLike | HalfTensorLike> = Record<string, T>;

/** Which stack a state dict is of. */
export type TorchStack = 'encoder' | 'decoder';

/** Options of a Transformer's `loadTorch`. */
export interface LoadTorchStackOptions {
  /** Default: both, as `torch.nn.Transformer` has them. */
  stack?: TorchStack | undefined;
  /** Reads those tensors whose names begin with it, as by what follows it, and no others. Default: all. */
  prefix?: string | undefined;
}

const stacks = ['encoder', 'decoder'] as const;
const optionNames = new Set(['stack', 'prefix']);

/** A state dict's tensors, of names and shapes that the core looks at. */
export function readStateDict(what: string, value: unknown, prefix?: unknown): NamedArray[] {
  const tensors = readEntries(what, value, prefix).map(([name, tensor]) => {
    const { data, shape } = readTensor(name, widened(name, tensor));
    return { name, shape, data };
  });
  // A getter of one of them may have detached another that was read before.
  for (const { name, data } of tensors) checkAttached(name, data);
  return tensors;
}

/** The tensors by this package's names, and what must be among them. */
export function readTorchStacks(
  stateDict: unknown,
  value: unknown,
): { tensors: NamedArray[]; complete: CompleteTensors } {
  const given =
    typeof value === 'string' ? { stack: value } : readOptions('options', value, optionNames);
  const stack = given.stack === undefined ? undefined : readChoice('stack', given.stack, stacks);
  const tensors = readStateDict('stateDict', stateDict, given.prefix).map((tensor) =>
    stack === undefined ? tensor : { ...tensor, name: `${stack}.${tensor.name}` },
  );
  const prefixes = (stack === undefined ? stacks : [stack]).map((name) => `${name}.`);
  const withoutBiases = prefixes.filter((prefix) => {
    const names = tensors
      .map(({ name }) => name)
      .filter((name) => name.startsWith(`${prefix}layers.`));
    return names.length > 0 && !names.some((name) => name.endsWith('bias'));
  });
  return { tensors, complete: { what: 'stateDict', prefixes, withoutBiases, moments: 'left' } };
}
