// Between the engine and what computes: sends each request to the core or to the GPU, by measurement or as the caller
// demands, and lets the core do what the GPU cannot or failed at. Start reading at Router.run. The GPU's code is loaded by
// webgpu/start.ts alone; engines with backend 'wasm' have no router.
import { estimate, gpuWins, type CostModel } from './cost-model.js';
import {
  disposed,
  HeadwiseError,
  invalidValue,
  tooLarge,
  unsupported,
  type CodedError,
} from './errors.js';
import { residentOf, residentsIn, standIn, type Resident } from './resident.js';
import {
  isCompute,
  mapArrays,
  type ComputeRequest,
  type ParameterArrays,
  type Request,
  type Response,
  type ShortRequest,
} from './request.js';
import type { GpuInfo, LastCall } from './gpu-info.js';
import type { Gpu, GpuRequest } from './webgpu/gpu.js';
import { snapshot, type Host, type MemoryUsage } from './wasm/host.js';
import type { ModuleInfo } from './wasm/loader.js';

/** What webgpu/start.ts gives. */
export interface StartedGpu {
  gpu: Gpu;
  cost: CostModel | null;
}

export type GpuStart = () => Promise<StartedGpu | { reason: string }>;

// After a loss 'auto' lets this much time pass before it asks for a device again.
const reviveAfterMs = 5000;

interface Choice {
  side: 'wasm' | 'webgpu';
  reason: string;
}

export class Router implements Host {
  readonly #cpu: Host;
  readonly #demanded: boolean;
  readonly #restart: GpuStart;
  #gpu: Gpu | undefined;
  #cost: CostModel | null = null;
  #reason: string | undefined;
  #lostAt = 0;
  #reviving: Promise<void> | undefined;
  #disposed = false;
  // Those of which a restarted GPU has to learn.
  readonly #layers = new Map<number, Parameters<Gpu['addLayer']>[1]>();
  lastCall: LastCall | undefined;

  /** `demanded`: backend 'webgpu'. */
  constructor(
    cpu: Host,
    demanded: boolean,
    started: StartedGpu | { reason: string },
    restart: GpuStart,
  ) {
    this.#cpu = cpu;
    this.#demanded = demanded;
    this.#restart = restart;
    this.#take(started);
  }

  #take(started: StartedGpu | { reason: string }): void {
    if ('reason' in started) {
      this.#reason = started.reason;
      return;
    }
    const { gpu, cost } = started;
    this.#gpu = gpu;
    this.#cost = cost;
    this.#reason = undefined;
    for (const [layer, config] of this.#layers) gpu.addLayer(layer, config);
    gpu.onLost = (reason) => this.#retire(reason);
  }

  #retire(reason: string): void {
    const gpu = this.#gpu;
    this.#gpu = undefined;
    this.#reason = reason;
    this.#lostAt = performance.now();
    gpu?.dispose(new HeadwiseError('DEVICE_LOST', reason));
  }

  get info(): ModuleInfo {
    return this.#cpu.info;
  }

  get demandsGpu(): boolean {
    return this.#demanded;
  }

  /** For `engine.info`. */
  get gpuInfo(): { gpu: GpuInfo | null; gpuReason?: string } {
    const opened = this.#gpu?.opened;
    if (opened === undefined) return { gpu: null, gpuReason: this.#reason ?? 'no GPU' };
    const { description, software, features, limits } = opened;
    return {
      gpu: {
        description,
        software,
        ...features,
        maxArrayBytes: limits.bindingBytes,
        cost: this.#cost,
      },
    };
  }

  get gpu(): Gpu | undefined {
    return this.#gpu;
  }

  /** The GPU, or UNSUPPORTED with the reason. */
  needGpu(what: string): Gpu {
    if (this.#disposed) throw disposed('the engine');
    if (this.#gpu === undefined)
      throw unsupported(`${what} needs a GPU: ${this.#reason ?? 'none'}`);
    return this.#gpu;
  }

  async run(request: Request, signal?: AbortSignal): Promise<Response> {
    const start = performance.now();
    const residents = this.#check(request);
    if (!isCompute(request)) return this.#runLayer(request);
    if (this.#demanded && this.#gpu === undefined) {
      const kept = snapshot(request);
      await this.#revive();
      return this.#route(kept, residents, signal, start);
    }
    if (!this.#demanded && this.#lostAt > 0 && start - this.#lostAt > reviveAfterMs)
      void this.#revive().catch(() => undefined);
    return this.#route(request, residents, signal, start);
  }

  async #route(
    request: ComputeRequest,
    residents: readonly Resident[],
    signal: AbortSignal | undefined,
    start: number,
  ): Promise<Response> {
    let choice = this.#choose(request, residents);
    for (const resident of residents) resident.retain();
    try {
      let response: Response;
      if (choice.side === 'webgpu') {
        // The caller may write to its arrays as soon as this call has returned its promise.
        const kept = snapshot(request);
        const gpu = this.#gpu as Gpu;
        try {
          response = await gpu.run(kept as GpuRequest, signal, (layer) => this.#parameters(layer));
        } catch (error) {
          const reason = this.#whyRetry(error, gpu);
          if (reason === undefined) throw error;
          choice = { side: 'wasm', reason };
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
      for (const resident of residents) resident.release();
    }
  }

  #choose(request: ComputeRequest, residents: readonly Resident[]): Choice {
    const gpu = this.#gpu;
    if (gpu === undefined) return { side: 'wasm', reason: this.#reason ?? 'no GPU' };
    const whyNot = gpu.whyNot(request);
    if (whyNot !== undefined) {
      const { reason, bytes } = whyNot;
      if (this.#demanded && bytes !== undefined) throw tooLarge(`${request.op}: ${reason}`, bytes);
      return { side: 'wasm', reason };
    }
    if (this.#demanded) return { side: 'webgpu', reason: "backend 'webgpu' was asked for" };
    if (this.#cost === null) return { side: 'wasm', reason: 'nothing was measured' };
    if (residents.length > 0) return { side: 'webgpu', reason: 'an input lies on the GPU' };
    const times = estimate(request, this.#cost);
    const words = `estimated ${times.gpuMs.toPrecision(2)} ms on the GPU, ${times.cpuMs.toPrecision(2)} ms on the CPU`;
    return { side: gpuWins(times) ? 'webgpu' : 'wasm', reason: words };
  }

  /** Why the core is to do what the GPU failed at, or undefined when the caller is to see the error. */
  #whyRetry(error: unknown, gpu: Gpu): string | undefined {
    const { code, message } = error as Partial<CodedError>;
    if (this.#disposed || code === 'ABORTED' || code === 'DISPOSED') return undefined;
    // A fault of validation, or of the driver, comes again: this GPU is not asked any more. Memory may be there next time.
    if (code !== 'OUT_OF_MEMORY' && this.#gpu === gpu)
      this.#retire(`the GPU failed: ${message ?? String(error)}`);
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
    if (residents.length === 0 && !isResident(request)) return this.#cpu.run(request, signal);
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
    for (const name of ['output', 'weights', 'averageWeights', 'scores', 'logSumExp'] as const) {
      const array = response[name];
      if (array !== undefined) response[name] = standIn(await gpu.upload(array));
    }
    return response;
  }

  async #revive(): Promise<void> {
    this.#reviving ??= (async () => {
      try {
        const started = await this.#restart();
        if (this.#disposed) {
          if ('gpu' in started) started.gpu.dispose();
          return;
        }
        this.#take(started);
        this.#lostAt = 'gpu' in started ? 0 : performance.now();
      } finally {
        this.#reviving = undefined;
      }
    })();
    await this.#reviving;
    if (this.#disposed) throw disposed('the engine');
    if (this.#demanded && this.#gpu === undefined)
      throw new HeadwiseError('DEVICE_LOST', `no GPU any more: ${this.#reason ?? ''}`);
  }

  #check(request: Request): readonly Resident[] {
    if (this.#disposed) throw disposed('the engine');
    const residents = residentsIn(request);
    for (const { owner } of residents) {
      if (owner !== this.#gpu)
        throw invalidValue(
          `${request.op}: a GPU tensor of this engine's wanted, got one of another's`,
        );
    }
    if (isResident(request)) this.needGpu('resident: true');
    return residents;
  }

  async #parameters(layer: number): Promise<ParameterArrays> {
    const { parameters } = await this.#cpu.run({ op: 'getParameters', layer });
    return parameters as ParameterArrays;
  }

  // What the core does with a layer, the GPU has to hear of, in the same order.
  #noteLayer(request: ShortRequest): void {
    switch (request.op) {
      case 'createLayer':
        this.#layers.set(request.layer, request.config);
        this.#gpu?.addLayer(request.layer, request.config);
        break;
      case 'setParameters':
        this.#gpu?.forgetParameters(request.layer);
        break;
      case 'destroyLayer':
        this.#layers.delete(request.layer);
        this.#gpu?.removeLayer(request.layer);
        break;
    }
  }

  async #runLayer(request: ShortRequest): Promise<Response> {
    const running = this.#cpu.run(request);
    this.#noteLayer(request);
    return running;
  }

  runSync(request: Request, out?: Float32Array): Response {
    if (this.#check(request).length > 0 || isResident(request)) {
      throw unsupported(
        'synchronous calls take and give no GPU tensors; use the asynchronous call',
      );
    }
    const start = performance.now();
    const response = this.#cpu.runSync(request, out);
    if (isCompute(request)) {
      this.lastCall = {
        op: request.op,
        side: 'wasm',
        reason: 'synchronous calls run on the CPU',
        milliseconds: performance.now() - start,
      };
    } else {
      this.#noteLayer(request);
    }
    return response;
  }

  async memory(): Promise<MemoryUsage> {
    return this.#cpu.memory();
  }

  get gpuBytes(): number {
    return this.#gpu?.bytes ?? 0;
  }

  dispose(): void {
    this.#disposed = true;
    this.#gpu?.dispose();
    this.#gpu = undefined;
    this.#cpu.dispose();
  }
}

function isResident(request: Request): boolean {
  return 'resident' in request && request.resident === true;
}
