// Wasm: what hosts the core: this thread (LocalHost, here) or a worker (remote-host.ts). Asynchronous requests of an engine
// run one after the other, in slices.
import { aborted, disposed } from '../errors.js';
import { isCompute, type Request, type Response } from '../request.js';
import { snapshot } from '../snapshot.js';
import { Core, type CoreCall } from './core.js';
import { isTurnDue, nextTurn, sliceMs } from './event-loop.js';
import { loadModule, type LoadedModule, type LoadOptions, type ModuleInfo } from './loader.js';

export interface MemoryUsage {
  heapBytes: number;
  inUseBytes: number;
  peakBytes: number;
}

export interface Host {
  readonly info: ModuleInfo;
  /** Queued. The request's arrays are read before this returns, or copied. */
  run(request: Request, signal?: AbortSignal): Promise<Response>;
  /** At once; throws UNSUPPORTED where the core is not on this thread. `out`, if given, becomes the response's output. */
  runSync(request: Request, out?: Float32Array): Response;
  memory(): Promise<MemoryUsage>;
  /** Whatever is queued or running rejects with DISPOSED. */
  dispose(): void;
}

interface Queued {
  request: Request;
  signal: AbortSignal | undefined;
  /** Resolved or rejected already, perhaps by dispose() while the call was paused. */
  settled: boolean;
  resolve(response: Response): void;
  reject(error: unknown): void;
}

function throwIfAborted({ request, signal }: Queued): void {
  if (signal?.aborted === true) throw aborted(request.op, signal.reason);
}

export class LocalHost implements Host {
  readonly info: ModuleInfo;
  #module: LoadedModule | undefined;
  #core: Core | undefined;
  readonly #queue: Queued[] = [];
  #running = false;

  static async start(options: LoadOptions, signal?: AbortSignal): Promise<LocalHost> {
    return new LocalHost(await loadModule(options, signal));
  }

  private constructor(module: LoadedModule) {
    this.#module = module;
    this.#core = new Core(module.bindings, module.memory, module.info.maxBytes);
    this.info = module.info;
  }

  #alive(): Core {
    if (this.#core === undefined) throw disposed('the engine');
    return this.#core;
  }

  runSync(request: Request, out?: Float32Array): Response {
    return this.#alive().run(request, out);
  }

  run(request: Request, signal?: AbortSignal): Promise<Response> {
    return new Promise((resolve, reject) => {
      const core = this.#alive();
      if (!this.#running && !isCompute(request)) {
        // Short business needs no queue when nothing is in it, so that layers made and disposed in a loop leave nothing.
        resolve(core.run(request));
        return;
      }
      const queued: Queued = { request, signal, settled: false, resolve, reject };
      if (this.#running) {
        queued.request = snapshot(request);
        this.#queue.push(queued);
      } else {
        // Begun within this very call: arrays are staged before it returns, and a short call needs no turn.
        this.#queue.push(queued);
        void this.#drain();
      }
    });
  }

  async memory(): Promise<MemoryUsage> {
    return Promise.resolve(this.#alive().usage());
  }

  dispose(): void {
    if (this.#module === undefined) return;
    const { bindings } = this.#module;
    this.#module = undefined;
    this.#core = undefined;
    for (const queued of this.#queue.splice(0)) {
      queued.settled = true;
      queued.reject(disposed('the engine'));
    }
    // No task runs now: calls are on this thread, and a paused one has none in progress. The heap goes with the instance.
    bindings.PThread.terminateAllThreads();
  }

  async #drain(): Promise<void> {
    this.#running = true;
    try {
      for (let queued = this.#queue[0]; queued !== undefined; queued = this.#queue[0]) {
        await this.#runQueued(queued);
        if (this.#queue[0] === queued) this.#queue.shift();
      }
    } finally {
      this.#running = false;
    }
  }

  // Never rejects; a queued request that dispose() has settled is left alone.
  async #runQueued(queued: Queued): Promise<void> {
    const { request } = queued;
    let call: CoreCall | undefined;
    try {
      throwIfAborted(queued);
      const core = this.#alive();
      let response: Response;
      if (isCompute(request)) {
        call = core.begin(request);
        while (!call.run(sliceMs)) {
          await nextTurn();
          if (queued.settled) return;
          throwIfAborted(queued);
        }
        response = call.response();
      } else {
        response = core.run(request);
      }
      // Many short calls in a row must not starve the event loop either.
      if (isTurnDue()) await nextTurn();
      if (queued.settled) return;
      queued.settled = true;
      queued.resolve(response);
    } catch (error) {
      queued.settled = true;
      queued.reject(error);
    } finally {
      if (this.#core !== undefined) call?.end();
    }
  }
}
