// Public: what a tensor argument may be.
import type { GpuTensor } from './gpu-tensor.js';
import type { ArrayTensorLike } from './tensor-types.js';

/**
 * What an input may be: data in row-major order and its shape. Tensors of other libraries, with `dims` for the shape, pass
 * straight through. `Float32Array` is used as it is; `Float64Array`, `Float16Array` and (nested) arrays of numbers are
 * converted. Integer arrays are refused with a `TypeError`. Tensors that lie on the engine's GPU are taken as they are.
 */
export type TensorLike = ArrayTensorLike | GpuTensor;
