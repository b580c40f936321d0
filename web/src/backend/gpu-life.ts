// Between router and GPU: whether there is a GPU at the moment, and why not: being started, refused, lost, found again.
// Start reading at GpuLife.begin.
import type { CostModel } from './cost-model.js';
import { disposed, HeadwiseError } from '../errors.js';
import type { GpuReasonCode } from '../gpu-info.js';
import type { Gpu } from '../webgpu/gpu.js';

/** What webgpu/start.ts gives. */
export interface StartedGpu {
  gpu: Gpu;
  cost: CostModel | null;
}

export interface NoGpu {
  code: GpuReasonCode;
  reason: string;
}

/** The caller's calls, of which measurements must not catch any. */
export interface Traffic {
  /** Calls so far. */
  calls: number;
  /** Calls in progress. */
  running: number;
}

/** Never rejects; after `signal` it leaves nothing behind. */
export type GpuStart = (signal: AbortSignal, traffic: Traffic) => Promise<StartedGpu | NoGpu>;

// After a loss 'auto' lets this much time pass before it asks for a device again.
const reviveAfterMs = 5000;

const isStarted = (started: StartedGpu | NoGpu): started is StartedGpu => 'gpu' in started;

export class GpuLife {
  readonly #start: GpuStart;
  readonly #onStarted: (gpu: Gpu) => void;
  readonly #ended = new AbortController();
  #gpu: Gpu | undefined;
  #cost: CostModel | null = null;
  #none: NoGpu = {
    code: 'starting',
    reason: 'the GPU is being started; until it is there the CPU computes',
  };
  #lostAt: number | undefined;
  #starting: Promise<void> | undefined;
  readonly traffic: Traffic = { calls: 0, running: 0 };

  /** `onStarted` is called with every GPU before it gets a call. */
  constructor(start: GpuStart, onStarted: (gpu: Gpu) => void) {
    this.#start = start;
    this.#onStarted = onStarted;
  }

  get gpu(): Gpu | undefined {
    return this.#gpu;
  }

  get cost(): CostModel | null {
    return this.#cost;
  }

  /** Why there is no GPU; only where there is none. */
  get none(): NoGpu {
    return this.#none;
  }

  get isDisposed(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Settled, never rejected, when no start is in progress. */
  get settled(): Promise<void> {
    return this.#starting ?? Promise.resolve();
  }

  get isStarting(): boolean {
    return this.#starting !== undefined;
  }

  /** Starts the GPU, unless that is in progress. Resolves when it is there or known not to be. */
  begin(): Promise<void> {
    this.#starting ??= this.#start(this.#ended.signal, this.traffic).then((started) => {
      this.#starting = undefined;
      if (this.isDisposed) {
        if (isStarted(started)) started.gpu.dispose();
        return;
      }
      if (this.#lostAt !== undefined)
        this.#lostAt = isStarted(started) ? undefined : performance.now();
      if (!isStarted(started)) {
        this.#none = started;
        return;
      }
      const { gpu, cost } = started;
      this.#gpu = gpu;
      this.#cost = cost;
      this.#onStarted(gpu);
      gpu.device.onLost = (reason) => this.retire({ code: 'lost', reason });
    });
    return this.#starting;
  }

  /** In the background, if a GPU was lost long enough ago. */
  reviveIfDue(): void {
    const lostAt = this.#lostAt;
    if (lostAt === undefined || this.#gpu !== undefined) return;
    if (performance.now() - lostAt > reviveAfterMs) void this.begin();
  }

  /** The GPU, started again if need be; DEVICE_LOST when it cannot be had. */
  async demand(): Promise<Gpu> {
    if (this.#gpu === undefined) await this.begin();
    if (this.isDisposed) throw disposed('the engine');
    if (this.#gpu === undefined)
      throw new HeadwiseError('DEVICE_LOST', `no GPU any more: ${this.#none.reason}`);
    return this.#gpu;
  }

  retire(none: NoGpu): void {
    const gpu = this.#gpu;
    this.#gpu = undefined;
    this.#none = none;
    this.#lostAt = performance.now();
    gpu?.dispose(new HeadwiseError('DEVICE_LOST', none.reason));
  }

  dispose(): void {
    this.#ended.abort();
    this.#gpu?.dispose();
    this.#gpu = undefined;
  }
}
