/// <reference lib="esnext.disposable" preserve="true" />
// Public: a tensor on the GPU, made by engine.upload, engine.wrap, or by a call with `resident: true`.
import { checkAlive, residentOf, setTensorData, type Resident } from './resident.js';
import { Tensor } from './tensor.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/**
 * A row-major float32 tensor on the device of one engine. It is accepted wherever that engine takes a tensor and spares the
 * copies to and from the device. It holds device memory until `dispose()`.
 */
export class GpuTensor {
  /** The size of each axis. */
  readonly shape: readonly number[];
  readonly #data: Float32Array;

  /** @internal */
  constructor(data: Float32Array, shape: readonly number[]) {
    this.#data = data;
    this.shape = shape;
    // Private fields are not seen by validation, which does not load this module.
    setTensorData(this, data);
  }

  get #resident(): Resident {
    return residentOf(this.#data) as Resident;
  }

  /** The `GPUBuffer` that holds the elements, from its first byte on. It may be longer than they are. */
  get gpuBuffer(): unknown {
    return this.#alive().gpuBuffer;
  }

  /** A copy in this thread's memory. */
  async download(): Promise<Tensor> {
    return new Tensor(await this.#alive().download(), [...this.shape]);
  }

  /** Frees the device's memory once calls in progress are done with it. May be called again. */
  dispose(): void {
    this.#resident.dispose();
  }

  /** {@link GpuTensor.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  #alive(): Resident {
    return checkAlive(this.#resident);
  }
}

/** A result's array as a tensor, on whichever side it is. */
export function toTensor(array: Float32Array, shape: number[]): Tensor {
  return (
    residentOf(array) === undefined ? new Tensor(array, shape) : new GpuTensor(array, shape)
  ) as Tensor;
}
