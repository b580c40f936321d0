// WebGPU: a device at work: its queue of calls, the tensors that lie on it, and how it ends. It takes calls that fit and knows
// nothing of what they are parts of. Start reading at WorkingDevice.compute.
import { orAborted } from '../abort.js';
import { disposed, HeadwiseError, outOfMemory } from '../errors.js';
import { isResident, resultNames, type CacheStepRequest, type Response } from '../request.js';
import { standIn } from '../resident.js';
import { nextTurn } from '../wasm/event-loop.js';
import { messageOf } from '../wasm/files.js';
import type { GpuPrecision } from '../validation/engine-options.js';
import { Buffers, type Slice } from './buffers.js';
import { Call } from './call.js';
import { addRequest, type Context, type GpuRequest, type HeldLayer, type Made } from './compute.js';
import type { Opened } from './device.js';
import { Forms, type Choice } from './forms.js';
import { baselineKinds, Pipelines, type PipelineName } from './pipelines.js';
import { DeviceTensor } from './tensors.js';
import { trialOn } from './trial.js';

// Engines side by side on one device, the caller's, share what was compiled.
// One map a precision.
const pipelinesOfDevice = {
  f32: new WeakMap<GPUDevice, Pipelines>(),
  f16: new WeakMap<GPUDevice, Pipelines>(),
};

function pipelinesOf({ device, limits, software, subgroupSize }: Opened, precision: GpuPrecision) {
  let pipelines = pipelinesOfDevice[precision].get(device);
  if (pipelines === undefined) {
    pipelines = new Pipelines(device);
    const half = precision === 'f16';
    const trial = trialOn({ device, pipelines, limits });
    pipelines.forms = new Forms({ software, subgroupSize, half }, trial);
    pipelinesOfDevice[precision].set(device, pipelines);
  }
  return pipelines;
}

export class WorkingDevice {
  readonly opened: Opened;
  readonly buffers: Buffers;
  readonly context: Context;
  #last: Promise<unknown> = Promise.resolve();
  #ended: HeadwiseError | undefined;
  /** Called once when the device is lost, with the reason. */
  onLost: ((reason: string) => void) | undefined;

  constructor(opened: Opened, precision: GpuPrecision) {
    const { device, limits } = opened;
    this.opened = opened;
    this.buffers = new Buffers(device, limits.bindingBytes);
    this.context = { limits, pipelines: pipelinesOf(opened, precision) };
    device.lost.then(
      ({ message }) => this.#lose(message),
      (error: unknown) => this.#lose(messageOf(error)),
    );
  }

  /** The forms of the attention kernel that were chosen so far, by tile and vectors. */
  get forms(): Readonly<Record<string, Choice>> {
    return this.context.pipelines.forms?.chosen ?? {};
  }

  /** Compiles everything, so that no call has to wait for it. */
  async warmUp(): Promise<void> {
    const names = Object.keys(baselineKinds) as PipelineName[];
    await Promise.all(names.map((name) => this.context.pipelines.get(name)));
  }

  // --- calls

  /** In turn. One that still waits when the signal aborts rejects at once; its work is to find that out as well. */
  queue<T>(work: () => Promise<T>, op = '', signal?: AbortSignal): Promise<T> {
    let isWaiting = true;
    const result = this.#last.then(() => {
      isWaiting = false;
      return work();
    });
    this.#last = result.catch(() => undefined);
    return orAborted(result, op, signal, () => isWaiting);
  }

  /** `work` has a call's buffers while it runs. */
  async withCall<T>(work: (call: Call) => Promise<T>): Promise<T> {
    this.check();
    const call = new Call(this.opened.device, this.buffers);
    let failed = true;
    try {
      const result = await work(call);
      failed = false;
      return result;
    } catch (error) {
      // On a lost device everything fails in ways of its own.
      await nextTurn();
      throw this.#ended ?? error;
    } finally {
      call.end(failed);
    }
  }

  /** A request, in its turn already. `check` throws to end it. */
  compute(request: GpuRequest, layer: HeldLayer | undefined, check: () => void): Promise<Response> {
    return this.withCall(async (call) => {
      const made = await addRequest(this.context, call, request, layer);
      return this.collect(call, made, request, check);
    });
  }

  /** Runs the call's steps and makes its response, on the side where it is wanted. */
  async collect(
    call: Call,
    made: readonly Made[],
    request: GpuRequest | CacheStepRequest,
    check: () => void,
  ): Promise<Response> {
    const response: Response = {};
    // Weights of no head.
    if ('weightHeads' in request && request.weightHeads?.length === 0)
      response.weights = new Float32Array(0);
    const resident = isResident(request);
    const kept: [keyof Response, Slice, number][] = [];
    const downloads = call.guard(() =>
      made.map(({ name, slice, offset, length }) => {
        if (!resident) return [name, call.download(slice, offset, length * 4)] as const;
        let own = slice;
        if (offset > 0) {
          own = call.take('storage', length * 4);
          call.copy(slice, offset, own, length * 4);
        }
        kept.push([name, own, length]);
        return undefined;
      }),
    );
    await call.finish(this.opened.limits.dispatchWork, check);
    this.check();
    await Promise.all(
      downloads.map(async (entry) => {
        if (entry !== undefined) Object.assign(response, { [entry[0]]: await call.read(entry[1]) });
      }),
    );
    for (const [name, slice, length] of kept)
      Object.assign(response, { [name]: standIn(this.#tensor(call.keep(slice), length)) });
    return response;
  }

  // --- tensors

  /** Copies to the device. Rejects with OUT_OF_MEMORY. */
  async upload(data: Float32Array): Promise<DeviceTensor> {
    const { bindingBytes } = this.opened.limits;
    if (data.byteLength > bindingBytes) throw outOfMemory('upload', data.byteLength, bindingBytes);
    return this.withCall(async (call) => {
      const slice = call.guard(() => call.upload(data));
      await call.settled();
      return this.#tensor(call.keep(slice), data.length);
    });
  }

  /** Moves a response's results to the device. */
  async toDevice(response: Response): Promise<Response> {
    for (const name of resultNames) {
      const array = response[name];
      if (array !== undefined) response[name] = standIn(await this.upload(array));
    }
    return response;
  }

  /** A caller's buffer, of at least `elements` floats. */
  wrap(buffer: GPUBuffer, elements: number): DeviceTensor {
    return this.#tensor({ buffer, bytes: Math.max(4, elements * 4) }, elements, false);
  }

  #tensor(slice: Slice, elements: number, owned = true): DeviceTensor {
    return new DeviceTensor(
      this,
      slice,
      elements,
      owned ? this.buffers : undefined,
      (tensor) =>
        this.withCall(async (call) => {
          const download = call.guard(() => call.download(tensor.slice, 0, tensor.elements * 4));
          await call.finish(1, () => undefined);
          return call.read(download);
        }),
      () => this.#ended?.message,
    );
  }

  // --- life

  /** Throws when the device is gone. */
  check(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  #lose(message: string): void {
    if (this.#ended !== undefined) return;
    const reason = `the GPU device was lost: ${message === '' ? 'no reason was given' : message}`;
    this.#ended = new HeadwiseError('DEVICE_LOST', reason);
    this.buffers.dispose();
    this.onLost?.(reason);
  }

  /** Frees all memory; whatever is queued or running rejects with the reason. */
  dispose(reason: HeadwiseError = disposed('the engine')): void {
    this.#ended ??= reason;
    this.buffers.dispose();
    if (this.opened.owned) this.opened.device.destroy();
  }
}
