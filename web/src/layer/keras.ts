// Layer: parameters from Keras' `layer.get_weights()`.
//
// keras.layers.MultiHeadAttention gives query, key, value and output kernels, each followed by its bias if there are any:
// [in,H,D] and [H,D], the output [H,Dv,out] and [out]. A layer made of four Dense layers gives [in,out] and [out] in the same
// order; row-major, both are the same numbers in the same order.
import type { FloatsLike } from '../tensor-types.js';
import { invalidShape, invalidType, unsupported } from '../errors.js';
import type { LayerConfig, ParameterArrays } from '../request.js';
import { describe } from '../validation/arrays.js';
import { readAnyFloats } from '../validation/shapes.js';
import { parameterPaths, parameterShapes } from './parameters.js';

/** Reads `get_weights()`: eight arrays, four for a layer without biases. */
export function readKeras(arrays: readonly FloatsLike[], config: LayerConfig): ParameterArrays {
  if (!Array.isArray(arrays)) {
    throw invalidType(`arrays: the array of layer.get_weights() wanted, got ${describe(arrays)}`);
  }
  if (config.convolution !== undefined || config.score === 'additive') {
    throw unsupported(
      'loadKeras: Keras has no such layer with convolutions or an additive score; use setWeights',
    );
  }
  const shapes = parameterShapes(config);
  const kinds = shapes.flatMap((shape, kind) => (shape === undefined ? [] : [kind]));
  if (arrays.length !== kinds.length) {
    const biases = config.bias ? 'with' : 'without';
    throw invalidShape(
      `arrays: ${kinds.length} arrays wanted for a layer ${biases} biases, got ${arrays.length}`,
    );
  }
  const parameters: ParameterArrays = [];
  kinds.forEach((kind, i) => {
    const [group, part] = parameterPaths[kind] as (typeof parameterPaths)[number];
    const shape = shapes[kind] as number[];
    const name = `arrays[${i}] (${group} ${part})`;
    const array = readAnyFloats(name, arrays[i]);
    const flat =
      kind === 6
        ? [mul(shape.slice(0, 2)), shape[2]]
        : [...shape.slice(0, -2), mul(shape.slice(-2))];
    const dense = part === 'kernel' ? flat : [mul(shape)];
    const got = String(array.shape);
    // A flat array without a shape is taken by its length.
    if (got !== String(shape) && got !== String(dense) && got !== String([mul(shape)])) {
      throw invalidShape(`${name}: shape [${shape}] or [${dense}] wanted, got [${array.shape}]`);
    }
    parameters[kind] = array.data;
  });
  return parameters;
}

function mul(sizes: readonly number[]): number {
  return sizes.reduce((a, b) => a * b, 1);
}
