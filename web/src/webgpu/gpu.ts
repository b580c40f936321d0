// WebGPU: one engine's GPU: what it can do, its queue of calls, its tensors and layers, and how it ends. Start reading at
// Gpu.run. Whether a call comes here at all is the router's business (web/src/router.ts).
import { onAbort } from '../abort.js';
import { aborted, disposed, HeadwiseError, outOfMemory } from '../errors.js';
import { standIn } from '../resident.js';
import {
  isResident,
  resultNames,
  type CacheStepRequest,
  type ComputeRequest,
  type LayerConfig,
  type ParameterArrays,
  type Response,
} from '../request.js';
import { nextTurn } from '../wasm/event-loop.js';
import { messageOf } from '../wasm/files.js';
import { whyNotAttention } from './attention.js';
import { Buffers, type Slice } from './buffers.js';
import { GpuCaches } from './caches.js';
import { Call } from './call.js';
import { addRequest, type GpuRequest, type HeldLayer, type Made } from './compute.js';
import type { GpuPrecision } from '../validation/engine-options.js';
import { openDevice, type Opened } from './device.js';
import { Forms, type Choice } from './forms.js';
import { isLarge, runInPieces } from './large.js';
import { DeviceParameters, whyNotLayer } from './layer.js';
import { whyNotLinear } from './linear.js';
import { whyNotMerge } from './merge.js';
import { baselineKinds, Pipelines, type PipelineName } from './pipelines.js';
import type { Obstacle } from './plan.js';
import { DeviceTensor } from './tensors.js';
import { trialOn } from './trial.js';

// Those that import it know it from here.
export type { GpuRequest };

interface Layer {
  config: LayerConfig;
  parameters: Promise<DeviceParameters> | undefined;
}

// Engines side by side on one device, the caller's, share what was compiled.
// By precision.
const pipelinesOfDevice = {
  f32: new WeakMap<GPUDevice, Pipelines>(),
  f16: new WeakMap<GPUDevice, Pipelines>(),
};

export class Gpu {
  readonly opened: Opened;
  readonly precision: GpuPrecision;
  readonly #buffers: Buffers;
  readonly #pipelines: Pipelines;
  readonly #layers = new Map<number, Layer>();
  readonly caches: GpuCaches;
  #last: Promise<unknown> = Promise.resolve();
  #ended: HeadwiseError | undefined;
  /** Called once when the device is lost, with the reason. */
  onLost: ((reason: string) => void) | undefined;

  /** Rejects with NoDevice. */
  static async start(given: GPUDevice | undefined, precision: GpuPrecision = 'f32'): Promise<Gpu> {
    return new Gpu(await openDevice(given), precision);
  }

  private constructor(opened: Opened, precision: GpuPrecision) {
    const { device, limits, software, subgroupSize } = opened;
    this.opened = opened;
    this.precision = precision;
    this.#buffers = new Buffers(device, limits.bindingBytes);
    let pipelines = pipelinesOfDevice[precision].get(device);
    if (pipelines === undefined) {
      pipelines = new Pipelines(device);
      const half = precision === 'f16';
      const trial = trialOn({ device, pipelines, limits });
      pipelines.forms = new Forms({ software, subgroupSize, half }, trial);
      pipelinesOfDevice[precision].set(device, pipelines);
    }
    this.#pipelines = pipelines;
    this.caches = new GpuCaches({
      context: { limits, pipelines },
      buffers: this.#buffers,
      queue: (work) => this.#queue(work),
      withCall: (work) => this.#withCall(work),
      check: () => {
        if (this.#ended !== undefined) throw this.#ended;
      },
      collect: (...of) => this.#collect(...of),
      toDevice: (response) => this.toDevice(response),
    });
    device.lost.then(
      ({ message }) => this.#lose(message),
      (error: unknown) => this.#lose(messageOf(error)),
    );
  }

  #lose(message: string): void {
    if (this.#ended !== undefined) return;
    const reason = `the GPU device was lost: ${message === '' ? 'no reason was given' : message}`;
    this.#ended = new HeadwiseError('DEVICE_LOST', reason);
    this.#buffers.dispose();
    this.onLost?.(reason);
  }

  /** The forms of the attention kernel that were chosen so far, by tile and vectors. */
  get forms(): Readonly<Record<string, Choice>> {
    return this.#pipelines.forms?.chosen ?? {};
  }

  get bytes(): number {
    return this.#buffers.bytes;
  }

  /** Why the GPU cannot do a request, or undefined when it can. */
  whyNot(request: ComputeRequest): Obstacle | undefined {
    const { limits } = this.opened;
    switch (request.op) {
      case 'attention':
        return whyNotAttention(request, limits);
      case 'layerForward': {
        const { batch, queries, keys } = request;
        if (batch * queries * keys === 0) return { reason: 'there is nothing to compute' };
        const layer = this.#layers.get(request.layer);
        if (layer === undefined) return { reason: 'the layer is gone' };
        return whyNotLayer(layer.config, request, limits);
      }
      case 'linear':
        return whyNotLinear(request, limits);
      case 'mergeAttention':
        return whyNotMerge(request, limits);
      default:
        return { reason: `${request.op} runs on the CPU` };
    }
  }

  /**
   * Queued; `whyNot` must have said nothing. The request's arrays must not change until it settles. `parametersOf` fetches a
   * layer's parameters from the core.
   */
  async run(
    request: GpuRequest,
    signal: AbortSignal | undefined,
    parametersOf: (layer: number) => Promise<ParameterArrays>,
  ): Promise<Response> {
    const layer =
      request.op === 'layerForward' ? (this.#layers.get(request.layer) as Layer) : undefined;
    // Those of now, whatever is set while this call waits.
    const parameters =
      request.op === 'layerForward' && layer !== undefined
        ? this.#parametersOf(layer, request.layer, parametersOf)
        : undefined;
    parameters?.catch(() => undefined); // it is awaited in its turn
    const check = (): void => {
      if (this.#ended !== undefined) throw this.#ended;
      if (signal?.aborted === true) throw aborted(request.op, signal.reason);
    };
    const runPiece = (piece: GpuRequest): Promise<Response> =>
      this.#queue(
        async () => {
          check();
          const held = layer &&
            parameters && { config: layer.config, parameters: await parameters };
          return this.#withCall((call) => this.#compute(call, piece, held, check));
        },
        signal,
        request.op,
      );
    const { limits } = this.opened;
    try {
      if (request.op === 'mergeAttention' || !isLarge(request, layer?.config, limits))
        return await runPiece(request);
      const response = await runInPieces(request, layer?.config, limits, runPiece);
      return isResident(request) ? await this.toDevice(response) : response;
    } finally {
      parameters?.then((held) => held.release()).catch(() => undefined);
    }
  }

  /** Moves the results to the device. */
  async toDevice(response: Response): Promise<Response> {
    for (const name of resultNames) {
      const array = response[name];
      if (array !== undefined) response[name] = standIn(await this.upload(array));
    }
    return response;
  }

  async #compute(
    call: Call,
    request: GpuRequest,
    layer: HeldLayer | undefined,
    check: () => void,
  ): Promise<Response> {
    const context = { limits: this.opened.limits, pipelines: this.#pipelines };
    const made = await addRequest(context, call, request, layer);
    return this.#collect(call, made, request, check);
  }

  /** Runs the call's steps and makes its response, on the side where it is wanted. */
  async #collect(
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
    if (this.#ended !== undefined) throw this.#ended;
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
    return this.#withCall(async (call) => {
      const slice = call.guard(() => call.upload(data));
      await call.settled();
      return this.#tensor(call.keep(slice), data.length);
    });
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
      owned ? this.#buffers : undefined,
      (tensor) =>
        this.#withCall(async (call) => {
          const download = call.guard(() => call.download(tensor.slice, 0, tensor.elements * 4));
          await call.finish(1, () => undefined);
          return call.read(download);
        }),
      () => this.#ended?.message,
    );
  }

  // --- layers

  addLayer(layer: number, config: LayerConfig): void {
    this.#layers.set(layer, { config, parameters: undefined });
  }

  /** The core's parameters have changed. */
  forgetParameters(layer: number): void {
    const known = this.#layers.get(layer);
    const parameters = known?.parameters;
    if (known !== undefined) known.parameters = undefined;
    parameters?.then((held) => held.release()).catch(() => undefined);
  }

  removeLayer(layer: number): void {
    this.forgetParameters(layer);
    this.#layers.delete(layer);
  }

  get layers(): ReadonlyMap<number, { config: LayerConfig }> {
    return this.#layers;
  }

  // Resolves to parameters that the caller has to release.
  async #parametersOf(
    layer: Layer,
    id: number,
    fetch: (layer: number) => Promise<ParameterArrays>,
  ): Promise<DeviceParameters> {
    if (layer.parameters === undefined) {
      const fetched = fetch(id);
      const made = fetched.then((arrays) =>
        this.#withCall(async (call) => {
          const held = call.guard(() => new DeviceParameters(call, this.#buffers, arrays));
          await call.settled();
          return held;
        }),
      );
      layer.parameters = made;
      made.catch(() => {
        if (layer.parameters === made) layer.parameters = undefined;
      });
    }
    const held = await layer.parameters;
    held.retain();
    return held;
  }

  // --- life

  /** Compiles everything, so that no call has to wait for it. */
  async warmUp(): Promise<void> {
    const names = Object.keys(baselineKinds) as PipelineName[];
    await Promise.all(names.map((name) => this.#pipelines.get(name)));
  }

  /** In turn. One that still waits when the signal aborts rejects at once. */
  #queue<T>(work: () => Promise<T>, signal?: AbortSignal, op = ''): Promise<T> {
    let begun = false;
    const result = this.#last.then(() => {
      begun = true;
      return work();
    });
    this.#last = result.catch(() => undefined);
    if (signal === undefined) return result;
    return new Promise((resolve, reject) => {
      const forget = onAbort(signal, () => {
        if (!begun) reject(aborted(op, signal.reason));
      });
      result.then(resolve, reject).finally(forget);
    });
  }

  async #withCall<T>(work: (call: Call) => Promise<T>): Promise<T> {
    if (this.#ended !== undefined) throw this.#ended;
    const call = new Call(this.opened.device, this.#buffers);
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

  /** Frees all memory; whatever is queued or running rejects with DISPOSED. */
  dispose(reason: HeadwiseError = disposed('the engine')): void {
    this.#ended ??= reason;
    this.#layers.clear();
    this.#buffers.dispose();
    if (this.opened.owned) this.opened.device.destroy();
  }
}
