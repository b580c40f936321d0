// WebGPU: the GPU as a backend: what it can do, and where each request goes. What is too large for the device goes in pieces
// (large.ts), one call of the device (working-device.ts) each. Start reading at Gpu.run. Whether a request comes here at all
// is the router's business (web/src/backend/router.ts).
import type { Backend, DeviceUsage, Obstacle } from '../backend/backend.js';
import { aborted, unsupported, type HeadwiseError } from '../errors.js';
import { isResident, type Request, type Response } from '../request.js';
import type { GpuPrecision } from '../validation/engine-options.js';
import { whyNotAttention } from './attention.js';
import { GpuCaches } from './caches.js';
import type { GpuRequest, HeldLayer } from './compute.js';
import { openDevice, type Opened } from './device.js';
import { isLarge, runInPieces } from './large.js';
import { whyNotLayer } from './layer.js';
import { GpuLayers } from './layers.js';
import { whyNotLinear } from './linear.js';
import { whyNotMerge } from './merge.js';
import { WorkingDevice } from './working-device.js';

export class Gpu implements Backend {
  readonly precision: GpuPrecision;
  readonly device: WorkingDevice;
  readonly #layers: GpuLayers;
  readonly #caches: GpuCaches;

  /** `core` has the layers' parameters, and does for a cache what the kernels cannot. Rejects with NoDevice. */
  static async start(
    core: Pick<Backend, 'run'>,
    given: GPUDevice | undefined,
    precision: GpuPrecision = 'f32',
  ): Promise<Gpu> {
    return new Gpu(core, await openDevice(given), precision);
  }

  private constructor(core: Pick<Backend, 'run'>, opened: Opened, precision: GpuPrecision) {
    this.precision = precision;
    this.device = new WorkingDevice(opened, precision);
    this.#layers = new GpuLayers(this.device, core);
    this.#caches = new GpuCaches(this.device, core);
  }

  whyNot(request: Request): Obstacle | undefined {
    const { limits } = this.device.opened;
    switch (request.op) {
      case 'attention':
        return whyNotAttention(request, limits);
      case 'layerForward': {
        const { batch, queries, keys } = request;
        if (batch * queries * keys === 0) return { reason: 'there is nothing to compute' };
        const config = this.#layers.configOf(request.layer);
        if (config === undefined) return { reason: 'the layer is gone' };
        return whyNotLayer(config, request, limits);
      }
      case 'linear':
        return whyNotLinear(request, limits);
      case 'mergeAttention':
        return whyNotMerge(request, limits);
      case 'createCache':
        return this.#caches.whyNot(request.config);
      default:
        return { reason: `${request.op} runs on the CPU` };
    }
  }

  /**
   * `whyNot` must have said nothing. The request's arrays must not change until it settles: who sends it makes a copy. Of what
   * the core does with a layer the GPU is told by the same request.
   */
  run(request: Request, signal?: AbortSignal): Promise<Response> {
    switch (request.op) {
      case 'attention':
      case 'layerForward':
      case 'linear':
      case 'mergeAttention':
        return this.#compute(request, signal);
      case 'createCache':
      case 'forkCache':
      case 'trimCache':
      case 'dropTokens':
      case 'readCache':
        return this.#caches.run(request);
      case 'cacheStep':
        return this.#caches.step(request, signal);
      case 'createLayer':
        this.#layers.add(request.layer, request.config);
        return Promise.resolve({});
      case 'setParameters':
        this.#layers.forgetParameters(request.layer);
        return Promise.resolve({});
      case 'destroy':
        this.#layers.remove(request.number);
        return this.#caches.destroy(request.number);
      default:
        return Promise.reject(unsupported(`${request.op} runs on the CPU`));
    }
  }

  async #compute(request: GpuRequest, signal: AbortSignal | undefined): Promise<Response> {
    const { device } = this;
    const { limits } = device.opened;
    const { op } = request;
    const layer = op === 'layerForward' ? this.#layers.hold(request.layer) : undefined;
    layer?.catch(() => undefined); // it is awaited in its turn
    const config = op === 'layerForward' ? this.#layers.configOf(request.layer) : undefined;
    const check = (): void => {
      device.check();
      if (signal?.aborted === true) throw aborted(op, signal.reason);
    };
    const runPiece = (piece: GpuRequest): Promise<Response> =>
      device.queue(
        async () => {
          check();
          return device.compute(piece, await layer, check);
        },
        op,
        signal,
      );
    try {
      if (request.op === 'mergeAttention' || !isLarge(request, config, limits))
        return await runPiece(request);
      const response = await runInPieces(request, config, limits, runPiece);
      return isResident(request) ? await device.toDevice(response) : response;
    } finally {
      layer?.then(release).catch(() => undefined);
    }
  }

  memory(): Promise<DeviceUsage> {
    return Promise.resolve({ gpuBytes: this.device.buffers.bytes });
  }

  dispose(reason?: HeadwiseError): void {
    this.#layers.clear();
    this.device.dispose(reason);
  }
}

const release = ({ parameters }: HeldLayer): void => parameters.release();
