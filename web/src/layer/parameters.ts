// Layer: what a layer's parameters are called, their shapes, and `getWeights`' and `setWeights`' objects.
import type { FloatsLike } from '../tensor-types.js';
import { invalidType, invalidValue } from '../errors.js';
import type { LayerConfig, ParameterArrays } from '../request.js';
import { Tensor } from '../tensor.js';
import { readOptions } from '../validation/options.js';
import { checkShape, product, readAnyFloats } from '../validation/shapes.js';

/** A projection's parameters: kernel `[in, heads, size]` (convolution: `[kernelSize, in, heads, size]`), bias `[heads, size]`. */
export interface ProjectionWeights<T = Tensor> {
  kernel: T;
  bias?: T;
}

/**
 * A layer's parameters. The output kernel is `[heads, size, out]`, its bias `[out]`; with merge 'sum' the kernel is
 * `[1, size, out]`. The additive score has a kernel `[heads, size]`.
 */
export interface LayerWeights<T = Tensor> {
  query: ProjectionWeights<T>;
  key: ProjectionWeights<T>;
  value: ProjectionWeights<T>;
  output: ProjectionWeights<T>;
  score?: { kernel: T };
}

/** What `setWeights` takes: any of the parameters, in the shapes that `getWeights` gives. Others stay as they are. */
export type LayerWeightsLike = {
  readonly [K in keyof LayerWeights]?: {
    readonly kernel?: FloatsLike;
    readonly bias?: FloatsLike;
  };
};

/** The order is that of the core's ParameterKind. */
export const parameterPaths = [
  ['query', 'kernel'],
  ['query', 'bias'],
  ['key', 'kernel'],
  ['key', 'bias'],
  ['value', 'kernel'],
  ['value', 'bias'],
  ['output', 'kernel'],
  ['output', 'bias'],
  ['score', 'kernel'],
] as const;

const groupNames = new Set<string>(parameterPaths.map(([group]) => group));
const partNames = new Set<string>(['kernel', 'bias']);

/** The shape of each parameter by its kind; undefined where the layer has none. */
export function parameterShapes(config: LayerConfig): (number[] | undefined)[] {
  const { heads, kvHeads, headDim, valueHeadDim } = config;
  const taps = config.convolution === undefined ? [] : [config.convolution.kernelSize];
  const bias = (shape: number[]) => (config.bias ? shape : undefined);
  return [
    [...taps, config.embedDim, heads, headDim],
    bias([heads, headDim]),
    [...taps, config.keyDim, kvHeads, headDim],
    bias([kvHeads, headDim]),
    [...taps, config.valueDim, kvHeads, valueHeadDim],
    bias([kvHeads, valueHeadDim]),
    [config.merge === 'sum' ? 1 : heads, valueHeadDim, config.outputDim],
    bias([config.outputDim]),
    config.score === 'additive' ? [heads, headDim] : undefined,
  ];
}

/** All elements of the layer's parameters together. */
export function parameterCount(config: LayerConfig): number {
  return parameterShapes(config).reduce(
    (sum, shape) => sum + (shape === undefined ? 0 : product(shape)),
    0,
  );
}

export function toWeights(parameters: ParameterArrays, config: LayerConfig): LayerWeights {
  const shapes = parameterShapes(config);
  const weights: Record<string, Record<string, Tensor>> = {};
  parameterPaths.forEach(([group, part], kind) => {
    const shape = shapes[kind];
    if (shape !== undefined)
      (weights[group] ??= {})[part] = new Tensor(parameters[kind] as Float32Array, shape);
  });
  return weights as unknown as LayerWeights;
}

export function readWeights(value: LayerWeightsLike, config: LayerConfig): ParameterArrays {
  if (value === undefined)
    throw invalidType('weights: an object like that of getWeights() wanted, got undefined');
  const groups = readOptions('weights', value, groupNames);
  const shapes = parameterShapes(config);
  for (const [group, parts] of Object.entries(groups))
    readOptions(`weights.${group}`, parts, partNames);
  return parameterPaths.map(([group, part], kind) => {
    const given = (groups[group] as Record<string, unknown> | undefined)?.[part];
    if (given === undefined) return undefined;
    const name = `weights.${group}.${part}`;
    const shape = shapes[kind];
    if (shape === undefined) throw invalidValue(`${name}: this layer has no such parameter`);
    const tensor = readAnyFloats(name, given);
    checkShape(name, tensor.shape, shape, '');
    return tensor.data;
  });
}
