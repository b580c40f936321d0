// Backend: the router, between the engine and what computes. It sends each request to the core or to the GPU, by measurement or as the caller
// demands, and lets the core do what the GPU cannot or failed at. Start reading at Router.run. The GPU's code is loaded by
// webgpu/start.ts alone; engines with backend 'wasm' have no router.
import { orAborted } from '../abort.js';
import { estimate, gpuWins, type CostModel, type Estimate } from './cost-model.js';
import {
  disposed,
  HeadwiseError,
  invalidValue,
  tooLarge,
  unsupported,
  type CodedError,
} from '../errors.js';
import { GpuLife, type GpuStart } from './gpu-life.js';
import { residentOf, residentsIn, type Resident } from '../resident.js';
import {
  isCompute,
  isResident,
  mapArrays,
  type CacheRequest,
  type CacheStepRequest,
  type ComputeRequest,
  type DestroyRequest,
  type LayerConfig,
  type Request,
  type Response,
  type ShortRequest,
} from '../request.js';
import type { CallReasonCode, GpuInfo, GpuReasonCode, LastCall } from '../gpu-info.js';
import { snapshot } from '../snapshot.js';
import type { ModuleInfo } from '../wasm/loader.js';
import type { Gpu } from '../webgpu/gpu.js';
import type { DeviceUsage, HeapUsage, Host, Runner } from './backend.js';

interface Choice {
  side: 'wasm' | 'webgpu';
  reason: string;
  reasonCode: CallReasonCode;
  estimate?: Estimate;
}

export class Router implements Runner {
  readonly #cpu: Host;
  readonly #demanded: boolean;
  readonly #life: GpuLife;
  // Those of which a restarted GPU has to learn.
  readonly #layers = new Map<number, LayerConfig>();
  // Caches that lie on a GPU, perhaps one that is lost.
  readonly #gpuCaches = new Map<number, Gpu>();
  lastCall: LastCall | undefined;

  /** `demanded`: backend 'webgpu'. The GPU's start begins at once; who has to wait for it awaits `gpuSettled`. */
  constructor(cpu: Host, demanded: boolean, start: GpuStart) {
    this.#cpu = cpu;
    this.#demanded = demanded;
    this.#life = new GpuLife(start, (gpu) => {
      for (const [layer, config] of this.#layers)
        void gpu.run({ op: 'createLayer', layer, config });
    });
    void this.#life.begin();
  }

  get gpuSettled(): Promise<void> {
    return this.#life.settled;
  }

  get info(): ModuleInfo {
    return this.#cpu.info;
  }

  get demandsGpu(): boolean {
    return this.#demanded;
  }

  /** For `engine.info`. */
  get gpuInfo(): { gpu: GpuInfo | null; gpuReason?: string; gpuReasonCode?: GpuReasonCode } {
    const { gpu } = this;
    if (gpu === undefined) {
      const { code, reason } = this.#life.none;
      return { gpu: null, gpuReason: reason, gpuReasonCode: code };
    }
    const { description, software, features, limits } = gpu.device.opened;
    return {
      gpu: {
        description,
        software,
        ...features,
        precision: gpu.precision,
        variants: gpu.device.forms,
        maxArrayBytes: limits.bindingBytes,
        cost: this.#life.cost,
      },
    };
  }

  get gpu(): Gpu | undefined {
    return this.#life.gpu;
  }

  /** The GPU, or UNSUPPORTED with the reason. */
  needGpu(what: string): Gpu {
    if (this.#life.isDisposed) throw disposed('the engine');
    if (this.gpu !== undefined) return this.gpu;
    const { code, reason } = this.#life.none;
    const cure = code === 'starting' ? ' (await engine.gpuReady() first)' : '';
    throw unsupported(`${what} needs a GPU: ${reason}${cure}`);
  }

  /** The same, after a start in progress. */
  async awaitGpu(what: string): Promise<Gpu> {
    if (this.#life.isStarting) await this.#life.settled;
    return this.needGpu(what);
  }

  async run(request: Request, signal?: AbortSignal): Promise<Response> {
    const start = performance.now();
    if (isResident(request) && this.#life.isStarting) {
      const kept = snapshot(request);
      await orAborted(this.#life.settled, request.op, signal);
      return this.run(kept, signal);
    }
    const residents = this.#check(request);
    if (request.op === 'cacheStep' && this.#gpuCaches.has(request.cache))
      return this.#runCacheStep(snapshot(request), residents, signal, start);
    if (isOfCache(request)) {
      const running = this.#runGpuCache(request);
      if (running !== undefined) return running;
    }
    if (!isCompute(request)) return this.#runLayer(request);
    if (this.#demanded && this.gpu === undefined) {
      const kept = snapshot(request);
      await orAborted(this.#life.demand(), request.op, signal);
      return this.#route(kept, residents, signal, start);
    }
    if (!this.#demanded) this.#life.reviveIfDue();
    return this.#route(request, residents, signal, start);
  }

  async #route(
    request: ComputeRequest,
    residents: readonly Resident[],
    signal: AbortSignal | undefined,
    start: number,
  ): Promise<Response> {
    let choice = this.#choose(request, residents);
    const { traffic } = this.#life;
    traffic.calls++;
    traffic.running++;
    for (const resident of residents) resident.retain();
    try {
      let response: Response;
      if (choice.side === 'webgpu') {
        // The caller may write to its arrays as soon as this call has returned its promise.
        const kept = snapshot(request);
        const gpu = this.gpu as Gpu;
        try {
          response = await gpu.run(kept, signal);
        } catch (error) {
          const reason = this.#whyRetry(error, gpu);
          if (reason === undefined) throw error;
          choice = { side: 'wasm', reason, reasonCode: 'failed' };
          response = await this.#onCpu(kept, residents, signal);
        }
      } else {
        response = await this.#onCpu(request, residents, signal);
      }
      this.lastCall = {
        op: request.op,
        ...choice,
        milliseconds: performance.now() - start,
      };
      return response;
    } finally {
      traffic.running--;
      for (const resident of residents) resident.release();
    }
  }

  #choose(request: ComputeRequest, residents: readonly Resident[]): Choice {
    const gpu = this.gpu;
    if (gpu === undefined) {
      const { code, reason } = this.#life.none;
      return { side: 'wasm', reason, reasonCode: code };
    }
    const whyNot = gpu.whyNot(request);
    if (whyNot !== undefined) {
      const { reason, bytes } = whyNot;
      if (this.#demanded && bytes !== undefined) throw tooLarge(`${request.op}: ${reason}`, bytes);
      return { side: 'wasm', reason, reasonCode: 'not-on-gpu' };
    }
    if (this.#demanded)
      return { side: 'webgpu', reason: "backend 'webgpu' was asked for", reasonCode: 'asked' };
    // Measured or given before 'auto' has a GPU at all.
    const { cost } = this.#life;
    if (residents.length > 0)
      return { side: 'webgpu', reason: 'an input lies on the GPU', reasonCode: 'input-on-gpu' };
    const times = estimate(request, cost as CostModel);
    const words = `estimated ${times.gpuMs.toPrecision(2)} ms on the GPU, ${times.cpuMs.toPrecision(2)} ms on the CPU`;
    const side = gpuWins(times) ? 'webgpu' : 'wasm';
    return { side, reason: words, reasonCode: 'measured', estimate: times };
  }

  /** Why the core is to do what the GPU failed at, or undefined when the caller is to see the error. */
  #whyRetry(error: unknown, gpu: Gpu): string | undefined {
    const { code, message } = error as Partial<CodedError>;
    if (this.#life.isDisposed || code === 'ABORTED' || code === 'DISPOSED') return undefined;
    // A fault of validation, or of the driver, comes again: this GPU is not asked any more. Memory may be there next time.
    if (code !== 'OUT_OF_MEMORY' && this.gpu === gpu)
      this.#life.retire({
        code: 'failed',
        reason: `the GPU failed: ${message ?? String(error)}`,
      });
    if (this.#demanded) {
      if (code === undefined)
        throw new HeadwiseError('DEVICE_LOST', `the GPU failed: ${message ?? String(error)}`, {
          cause: error,
        });
      return undefined;
    }
    return message ?? String(error);
  }

  async #onCpu(
    request: ComputeRequest,
    residents: readonly Resident[],
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    if (this.#cpu.whyNot(request) === undefined) return this.#cpu.run(request, signal);
    const gpu = isResident(request) ? this.needGpu('resident: true') : undefined;
    const arrays = new Map<unknown, Float32Array>();
    const kept = snapshot(request);
    for (const resident of residents) arrays.set(resident, await resident.download());
    const local = mapArrays(kept, (array) => {
      const resident = residentOf(array);
      return (resident === undefined ? array : arrays.get(resident)) as typeof array;
    });
    const response = await this.#cpu.run(local, signal);
    if (gpu === undefined) return response;
    return gpu.device.toDevice(response);
  }

  #check(request: Request): readonly Resident[] {
    if (this.#life.isDisposed) throw disposed('the engine');
    const residents = residentsIn(request);
    for (const { owner } of residents) {
      if (owner !== this.gpu?.device)
        throw invalidValue(
          `${request.op}: a GPU tensor of this engine's wanted, got one of another's`,
        );
    }
    if (isResident(request)) this.needGpu('resident: true');
    return residents;
  }

  // What the core does with a layer, the GPU has to hear of, in the same order.
  #noteLayer(request: ShortRequest): void {
    switch (request.op) {
      case 'createLayer':
        this.#layers.set(request.layer, request.config);
        break;
      case 'destroy':
        this.#layers.delete(request.number);
        break;
      case 'setParameters':
        break;
      default:
        return;
    }
    void this.gpu?.run(request);
  }

  async #runLayer(request: ShortRequest): Promise<Response> {
    const running = this.#cpu.run(request);
    this.#noteLayer(request);
    return running;
  }

  // Undefined for a cache that lies in the heap.
  #runGpuCache(request: CacheRequest | DestroyRequest): Promise<Response> | undefined {
    if (request.op === 'destroy') {
      const gpu = this.#gpuCaches.get(request.number);
      this.#gpuCaches.delete(request.number);
      return gpu?.run(request);
    }
    const gpu = this.#gpuOfCache(request);
    if (gpu === undefined) return undefined;
    this.#gpuCaches.set(request.cache, gpu);
    return gpu.run(request);
  }

  #gpuOfCache(request: CacheRequest): Gpu | undefined {
    if (request.op === 'forkCache') return this.#gpuCaches.get(request.from);
    if (request.op !== 'createCache') return this.#gpuCaches.get(request.cache);
    const { resident } = request.config;
    if (!(resident ?? this.#demanded)) return undefined;
    const gpu = resident === true ? this.needGpu('resident: true') : this.gpu;
    const whyNot = gpu?.whyNot(request);
    if (whyNot === undefined) return gpu;
    if (resident === true) throw unsupported(`resident: ${whyNot.reason}`);
    return undefined;
  }

  async #runCacheStep(
    request: CacheStepRequest,
    residents: readonly Resident[],
    signal: AbortSignal | undefined,
    start: number,
  ): Promise<Response> {
    const gpu = this.#gpuCaches.get(request.cache) as Gpu;
    const { traffic } = this.#life;
    traffic.calls++;
    traffic.running++;
    for (const resident of residents) resident.retain();
    try {
      const response = await gpu.run(request, signal);
      const milliseconds = performance.now() - start;
      const reason = 'the cache lies on the GPU';
      this.lastCall = {
        ...{ op: request.op, side: 'webgpu', reason, reasonCode: 'cache-on-gpu' },
        milliseconds,
      };
      return response;
    } catch (error) {
      const { code, message } = error as Partial<CodedError>;
      if (code !== undefined) throw error;
      const reason = `the GPU failed: ${message ?? String(error)}`;
      if (this.gpu === gpu) this.#life.retire({ code: 'failed', reason });
      throw new HeadwiseError('DEVICE_LOST', reason, { cause: error });
    } finally {
      traffic.running--;
      for (const resident of residents) resident.release();
    }
  }

  runSync(request: Request, out?: Float32Array): Response {
    if (this.#gpuCaches.size > 0 && 'cache' in request && this.#gpuCaches.has(request.cache)) {
      throw unsupported(
        'synchronous calls on a cache that lies on the GPU: use the asynchronous ones, or make it with resident: false',
      );
    }
    const compute = isCompute(request);
    if (isOfCache(request)) {
      const running = this.#runGpuCache(request);
      // A fork that fails tells its first step.
      running?.catch(() => undefined);
      if (running !== undefined) return {};
    }
    if (this.#check(request).length > 0 || isResident(request)) {
      throw unsupported(
        'synchronous calls take and give no GPU tensors; use the asynchronous call',
      );
    }
    const start = performance.now();
    this.#life.traffic.calls++;
    const response = this.#cpu.runSync(request, out);
    if (compute) {
      this.lastCall = {
        op: request.op,
        side: 'wasm',
        reason: 'synchronous calls run on the CPU',
        reasonCode: 'synchronous',
        milliseconds: performance.now() - start,
      };
    } else {
      this.#noteLayer(request);
    }
    return response;
  }

  async memory(): Promise<HeapUsage & DeviceUsage> {
    return { ...(await this.#cpu.memory()), gpuBytes: 0, ...(await this.gpu?.memory()) };
  }

  dispose(): void {
    this.#life.dispose();
    this.#cpu.dispose();
  }
}

// What concerns a cache, which may lie on the GPU.
function isOfCache(request: Request): request is CacheRequest | DestroyRequest {
  return request.op === 'destroy' || (!isCompute(request) && 'cache' in request);
}
