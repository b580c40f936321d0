// Wasm: what hosts the core: this thread (LocalHost, here) or a worker (remote-host.ts). Asynchronous requests of an engine
// run one after the other, in slices.
import { onAbort } from '../abort.js';
import type { HeapUsage, Host, Obstacle } from '../backend/backend.js';
import { aborted, disposed, HeadwiseError } from '../errors.js';
import { isCompute, type Request, type Response } from '../request.js';
import { whyNotOnHost } from '../resident.js';
import { snapshot } from '../snapshot.js';
import { Core, type CoreCall } from './core.js';
import { messageOf } from './files.js';
import { isTurnDue, nextTurn, sliceMs } from './event-loop.js';
import { loadModule, type LoadedModule, type LoadOptions, type ModuleInfo } from './loader.js';

interface Queued {
  request: Request;
  signal: AbortSignal | undefined;
  /** Resolved or rejected already, perhaps while the call waited or was paused. */
  settled: boolean;
  resolve(response: Response): void;
  reject(error: unknown): void;
  /** Ends the listening to the signal. */
  forget(): void;
}

const forget = (): void => undefined;

function throwIfAborted({ request, signal }: Queued): void {
  if (signal?.aborted === true) throw aborted(request.op, signal.reason);
}

// WebAssembly stopped in the middle of something: what it holds is of no use any more.
function isTrap(error: unknown): boolean {
  return (error as { name?: unknown } | null)?.name === 'RuntimeError';
}

export class LocalHost implements Host {
  readonly info: ModuleInfo;
  #module: LoadedModule | undefined;
  #core: Core | undefined;
  // Why there is no core any more.
  #gone: HeadwiseError | undefined;
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
    if (this.#core === undefined) throw this.#gone ?? disposed('the engine');
    return this.#core;
  }

  // Of a trap, which ends the engine; undefined for any other error.
  #lossOf(error: unknown): HeadwiseError | undefined {
    if (!isTrap(error)) return undefined;
    const message = `the core trapped and is lost: ${messageOf(error)}`;
    const lost = new HeadwiseError('DEVICE_LOST', message, { cause: error });
    this.#end(lost);
    return lost;
  }

  runSync(request: Request, out?: Float32Array): Response {
    const core = this.#alive();
    try {
      return core.run(request, out);
    } catch (error) {
      throw this.#lossOf(error) ?? error;
    }
  }

  run(request: Request, signal?: AbortSignal): Promise<Response> {
    return new Promise((resolve, reject) => {
      if (!this.#running && !isCompute(request)) {
        // Short business needs no queue when nothing is in it, so that layers made and disposed in a loop leave nothing.
        resolve(this.runSync(request));
        return;
      }
      this.#alive();
      const queued: Queued = { request, signal, settled: false, resolve, reject, forget };
      if (this.#running) {
        queued.request = snapshot(request);
        this.#queue.push(queued);
        if (signal !== undefined) queued.forget = onAbort(signal, () => this.#giveUp(queued));
      } else {
        // Begun within this very call: arrays are staged before it returns, and a short call needs no turn.
        this.#queue.push(queued);
        void this.#drain();
      }
    });
  }

  whyNot(request: Request): Obstacle | undefined {
    return whyNotOnHost(request);
  }

  async memory(): Promise<HeapUsage> {
    return Promise.resolve(this.#alive().usage());
  }

  // One that waits; one that runs hears of it between two slices.
  #giveUp(queued: Queued): void {
    const at = this.#queue.indexOf(queued);
    if (at <= 0) return;
    this.#queue.splice(at, 1);
    this.#settle(queued, () => queued.reject(aborted(queued.request.op, queued.signal?.reason)));
  }

  #settle(queued: Queued, tell: () => void): void {
    if (queued.settled) return;
    queued.settled = true;
    queued.forget();
    tell();
  }

  dispose(): void {
    this.#end(disposed('the engine'));
  }

  #end(reason: HeadwiseError): void {
    if (this.#module === undefined) return;
    this.#gone = reason;
    const { bindings } = this.#module;
    this.#module = undefined;
    this.#core = undefined;
    for (const queued of this.#queue.splice(0)) this.#settle(queued, () => queued.reject(reason));
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
      this.#settle(queued, () => queued.resolve(response));
    } catch (error) {
      const reason = this.#lossOf(error) ?? error;
      this.#settle(queued, () => queued.reject(reason));
    } finally {
      if (this.#core !== undefined) call?.end();
    }
  }
}
