// WebGPU: one call on its way: the buffers that it holds, the kernels that it will run, and what is read back. Every buffer is
// made and every kernel submitted inside error scopes; nothing that failed is ever read. Start reading at Call.finish.
import { outOfMemory } from '../errors.js';
import type { Buffers, Slice } from './buffers.js';
import { nudged } from './nudge.js';
import type { Dispatch } from './plan.js';
import type { Pipeline } from './pipelines.js';

/** What went wrong on the device: a validation error, or an internal one. */
export class DeviceFault extends Error {}

/** A kernel and what it is bound to, by binding number. */
interface Step {
  pipeline: Pipeline;
  slices: Readonly<Record<number, Slice>>;
  uniform: GPUBufferBinding;
  dispatch: Dispatch;
}

const filters = ['validation', 'out-of-memory', 'internal'] as const;

/** An output: read back, or kept on the device. */
interface Download {
  staging: Slice;
  bytes: number;
}

/** A byte of a buffer. */
interface Place {
  slice: Slice;
  offset: number;
}

export class Call {
  readonly device: GPUDevice;
  readonly #buffers: Buffers;
  readonly #held = new Set<Slice>();
  readonly #steps: Step[] = [];
  readonly #firstCopies: {
    from: Place;
    to: Place;
    bytes: number;
  }[] = [];
  readonly #copies: { from: GPUBuffer; offset: number; to: GPUBuffer; bytes: number }[] = [];
  readonly #faults: Promise<GPUError | null>[] = [];
  #wantedBytes = 0;

  constructor(device: GPUDevice, buffers: Buffers) {
    this.device = device;
    this.#buffers = buffers;
  }

  /** Runs `work` in error scopes; what they catch is thrown by `finish`. */
  guard<T>(work: () => T): T {
    for (const filter of filters) this.device.pushErrorScope(filter);
    try {
      return work();
    } finally {
      // Pushed and popped in one go, so that the scopes of overlapping calls nest.
      for (let i = 0; i < filters.length; i++) this.#faults.push(this.device.popErrorScope());
    }
  }

  /** A buffer of the pool, this call's until its end. */
  take(kind: Parameters<Buffers['take']>[0], bytes: number): Slice {
    this.#wantedBytes += bytes;
    const slice = this.#buffers.take(kind, bytes);
    this.#held.add(slice);
    return slice;
  }

  /** The same, with content. */
  upload(
    data: Float32Array | Int32Array | Uint32Array,
    kind: 'storage' | 'uniform' = 'storage',
  ): Slice {
    const slice = this.take(kind, data.byteLength);
    if (data.byteLength > 0) {
      // Shared memory is not taken by every browser.
      const isShared = Object.prototype.toString.call(data.buffer) === '[object SharedArrayBuffer]';
      const source = (isShared ? data.slice() : data) as Float32Array<ArrayBuffer>;
      this.device.queue.writeBuffer(slice.buffer, 0, source);
    }
    return slice;
  }

  /** The caller's from now on. */
  keep(slice: Slice): Slice {
    this.#held.delete(slice);
    return slice;
  }

  step(
    pipeline: Pipeline,
    slices: Readonly<Record<number, Slice>>,
    uniform: GPUBufferBinding,
    dispatch: Dispatch,
  ): void {
    this.#steps.push({ pipeline, slices, uniform, dispatch });
  }

  /** Bytes of a buffer, to be read once the steps are done. */
  download({ buffer }: Slice, offset: number, bytes: number): Download {
    const staging = this.take('readBack', bytes);
    if (bytes > 0) this.#copies.push({ from: buffer, offset, to: staging.buffer, bytes });
    return { staging, bytes };
  }

  /** Done before all steps. */
  copyFirst(from: Place, to: Place, bytes: number): void {
    if (bytes > 0) this.#firstCopies.push({ from, to, bytes });
  }

  copy(from: Slice, offset: number, to: Slice, bytes: number): void {
    this.#copies.push({ from: from.buffer, offset, to: to.buffer, bytes });
  }

  /**
   * Submits everything, at most `submitWork` multiply-adds at a time and two such portions on the device at once, and waits
   * for all errors. `check` is called between portions and throws to end the call.
   */
  async finish(submitWork: number, check: () => void): Promise<void> {
    let done: Promise<unknown> = Promise.resolve();
    for (let at = 0; at < this.#steps.length;) {
      const first = at;
      let work = 0;
      do work += (this.#steps[at++] as Step).dispatch.work;
      while (
        at < this.#steps.length &&
        work + (this.#steps[at] as Step).dispatch.work <= submitWork
      );
      const isLast = at === this.#steps.length;
      this.guard(() => this.#submit(first, at, isLast));
      const before = done;
      if (isLast) break;
      done = nudged(this.device.queue.onSubmittedWorkDone(), this.device);
      done.catch(() => undefined); // it is awaited after the next portion
      await before;
      check();
    }
    if (this.#steps.length === 0 && this.#copies.length + this.#firstCopies.length > 0)
      this.guard(() => this.#submit(0, 0, true));
    await this.settled();
  }

  /** Forgets the steps that have run, so that more can be added. */
  clear(): void {
    this.#steps.length = 0;
    this.#copies.length = 0;
  }

  /** Throws what the error scopes caught. */
  async settled(): Promise<void> {
    const faults = await Promise.all(this.#faults.splice(0));
    const fault = faults.find((error) => error !== null);
    if (fault === undefined || fault === null) return;
    if (Object.prototype.toString.call(fault).includes('OutOfMemory'))
      throw outOfMemory('webgpu', this.#wantedBytes);
    throw new DeviceFault(fault.message);
  }

  #submit(first: number, end: number, withCopies: boolean): void {
    const encoder = this.device.createCommandEncoder();
    for (const { from, to, bytes } of this.#firstCopies.splice(0)) {
      const { buffer } = from.slice;
      encoder.copyBufferToBuffer(buffer, from.offset, to.slice.buffer, to.offset, bytes);
    }
    if (first < end) {
      const pass = encoder.beginComputePass();
      for (const { pipeline, slices, uniform, dispatch } of this.#steps.slice(first, end)) {
        pass.setPipeline(pipeline.pipeline);
        pass.setBindGroup(0, this.#bindGroup(pipeline, slices, uniform));
        pass.dispatchWorkgroups(dispatch.x, dispatch.y);
      }
      pass.end();
    }
    if (withCopies) {
      for (const { from, offset, to, bytes } of this.#copies)
        encoder.copyBufferToBuffer(from, offset, to, 0, bytes);
    }
    this.device.queue.submit([encoder.finish()]);
  }

  #bindGroup(
    { layout, bindings }: Pipeline,
    slices: Readonly<Record<number, Slice>>,
    uniform: GPUBufferBinding,
  ): GPUBindGroup {
    const entries = Object.keys(bindings).map((key) => {
      const binding = Number(key);
      if (binding === 0) return { binding, resource: uniform };
      const { buffer, bytes } = slices[binding] as Slice;
      return { binding, resource: { buffer, size: Math.ceil(bytes / 4) * 4 } };
    });
    return this.device.createBindGroup({ layout, entries });
  }

  /** After `finish`. An own array. */
  async read({ staging, bytes }: Download): Promise<Float32Array> {
    if (bytes === 0) return new Float32Array(0);
    const { buffer } = staging;
    await nudged(buffer.mapAsync(1, 0, bytes), this.device);
    const floats = new Float32Array(buffer.getMappedRange(0, bytes)).slice();
    buffer.unmap();
    return floats;
  }

  /** Gives the buffers back; after a failure they are destroyed. */
  end(failed: boolean): void {
    for (const slice of this.#held) {
      if (failed) this.#buffers.drop(slice);
      else this.#buffers.give(slice);
    }
    this.#held.clear();
  }
}
