// WebGPU: what lies on the device for the caller: tensors, counted by reference.
import { disposed } from '../errors.js';
import type { Resident } from '../resident.js';
import type { Buffers, Slice } from './buffers.js';

/** An owned slice of the pool, or a caller's buffer, which is never destroyed. */
export class DeviceTensor implements Resident {
  readonly owner: object;
  readonly elements: number;
  readonly slice: Slice;
  readonly #buffers: Buffers | undefined;
  readonly #download: (tensor: DeviceTensor) => Promise<Float32Array>;
  readonly #whyGone: () => string | undefined;
  #disposed = false;
  #users = 0;

  constructor(
    owner: object,
    slice: Slice,
    elements: number,
    buffers: Buffers | undefined,
    download: (tensor: DeviceTensor) => Promise<Float32Array>,
    whyGone: () => string | undefined,
  ) {
    this.owner = owner;
    this.slice = slice;
    this.elements = elements;
    this.#buffers = buffers;
    this.#download = download;
    this.#whyGone = whyGone;
  }

  get gone(): string | undefined {
    return this.#disposed ? 'disposed' : this.#whyGone();
  }

  get gpuBuffer(): GPUBuffer {
    return this.slice.buffer;
  }

  retain(): void {
    this.#users++;
  }

  release(): void {
    this.#users--;
    this.#freeIfUnused();
  }

  async download(): Promise<Float32Array> {
    if (this.#disposed) throw disposed('the GPU tensor');
    this.retain();
    try {
      return await this.#download(this);
    } finally {
      this.release();
    }
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#freeIfUnused();
  }

  #freeIfUnused(): void {
    if (this.#disposed && this.#users === 0) this.#buffers?.give(this.slice);
  }
}
