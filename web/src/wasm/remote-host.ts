// Wasm: the page's side of an engine that lives in a worker, so that the page never freezes. Requests go there as copies
// whose buffers are transferred; the caller's arrays stay untouched.
import { onAbort } from '../abort.js';
import type { HeapUsage, Host, Obstacle } from '../backend/backend.js';
import {
  aborted,
  disposed,
  fromErrorRecord,
  HeadwiseError,
  initFailed,
  unsupported,
} from '../errors.js';
import type { Request, Response } from '../request.js';
import { messageOf } from './files.js';
import type { ThreadWorker } from './glue.js';
import { whyNotOnHost } from '../resident.js';
import { snapshot } from '../snapshot.js';
import type { LoadOptions, ModuleInfo } from './loader.js';
import { lockManager } from './locks.js';
import { buffersOf, type FromWorker, type ToWorker } from './protocol.js';
import { workerStarter, type WorkerRole } from './threads.js';

// A worker whose script does not say hello within this time never will.
const helloDeadlineMs = 4000;
// From there it fetches and compiles the binary and starts its threads. Firefox now and then (about once in a hundred starts of
// fresh pages) leaves a worker standing there for ever, so a first worker that takes long is replaced, once; the second has
// time even for slow networks.
const readyDeadlinesMs = [10_000, 60_000];

// Workers and hosts that an answer is awaited from. Firefox collects a worker that nothing refers to while it is idle, such as
// one that waits for a fetch, and a promise is no reference: what starts or computes has to be held from here.
const waiting = new Set<object>();

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class RemoteHost implements Host {
  readonly info: ModuleInfo;
  readonly #worker: ThreadWorker;
  readonly #pending = new Map<number, Pending>();
  readonly #watching = new AbortController();
  #nextId = 1;
  #gone: HeadwiseError | undefined;

  /** Rejects when the worker cannot be started, does not answer, or cannot start the engine. */
  static async start(options: LoadOptions): Promise<RemoteHost> {
    for (const deadline of readyDeadlinesMs.slice(0, -1)) {
      try {
        return await RemoteHost.#startWithin(options, deadline);
      } catch (error) {
        if (!(error instanceof Stalled)) throw error;
      }
    }
    return RemoteHost.#startWithin(options, readyDeadlinesMs.at(-1) as number);
  }

  static async #startWithin(options: LoadOptions, readyDeadlineMs: number): Promise<RemoteHost> {
    let worker: ThreadWorker;
    try {
      worker = (await workerStarter(options.workerUrl))();
    } catch (error) {
      throw new WorkerFailure(`the engine's worker could not be started: ${messageOf(error)}`);
    }
    try {
      const info = await greet(worker, options, readyDeadlineMs);
      return new RemoteHost(worker, info);
    } catch (error) {
      worker.terminate();
      throw error;
    }
  }

  private constructor(worker: ThreadWorker, info: ModuleInfo) {
    this.#worker = worker;
    this.info = info;
    worker.onmessage = ({ data }) => this.#receive(data as FromWorker);
    worker.onerror = (event) => {
      const message = (event as { message?: string } | null)?.message ?? 'unknown error';
      this.#lose(`the engine's worker failed: ${message}`);
    };
    worker.onexit = () => this.#lose("the engine's worker has ended");
    void this.#watch();
    worker.unref?.();
  }

  // A page is not told when a worker ends. But locks that it holds are given up then, and this one it holds for its whole life.
  async #watch(): Promise<void> {
    const { lock } = this.info;
    if (lock === undefined) return;
    try {
      await lockManager()?.request(lock, { signal: this.#watching.signal }, () =>
        this.#lose("the engine's worker has ended"),
      );
    } catch {
      // The engine was disposed of, or this page may not ask for locks.
    }
  }

  #lose(reason: string): void {
    this.#end(new HeadwiseError('DEVICE_LOST', reason));
  }

  async run(request: Request, signal?: AbortSignal): Promise<Response> {
    if (signal?.aborted === true) throw aborted(request.op, signal.reason);
    const copy = snapshot(request);
    const id = this.#nextId++;
    const forget = signal && onAbort(signal, () => this.#post({ id, abort: true }));
    try {
      return (await this.#ask(id, { id, request: copy }, buffersOf(copy))) as Response;
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ABORTED')
        throw aborted(request.op, signal?.reason);
      throw error;
    } finally {
      forget?.();
    }
  }

  runSync(): Response {
    throw unsupported(
      'synchronous calls need the engine on this thread: createEngine({ offMainThread: false }), or use the asynchronous call',
    );
  }

  whyNot(request: Request): Obstacle | undefined {
    return whyNotOnHost(request);
  }

  async memory(): Promise<HeapUsage> {
    const id = this.#nextId++;
    return (await this.#ask(id, { id, memory: true }, [])) as HeapUsage;
  }

  dispose(): void {
    this.#end(disposed('the engine'));
  }

  #end(error: HeadwiseError): void {
    if (this.#gone !== undefined) return;
    this.#gone = error;
    this.#watching.abort();
    this.#worker.terminate();
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    waiting.delete(this);
  }

  #post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    if (this.#gone === undefined) this.#worker.postMessage(message, transfer);
  }

  #ask(id: number, message: ToWorker, transfer: ArrayBuffer[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#gone !== undefined) throw this.#gone;
      this.#post(message, transfer);
      // Node: the worker keeps the process alive just as long as it is being waited for.
      if (this.#pending.size === 0) this.#worker.ref?.();
      waiting.add(this);
      this.#pending.set(id, { resolve, reject });
    });
  }

  #receive(message: FromWorker): void {
    if (!('id' in message)) return;
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) {
      this.#worker.unref?.();
      waiting.delete(this);
    }
    if ('error' in message) pending.reject(fromErrorRecord(message.error));
    else pending.resolve('usage' in message ? message.usage : message.response);
  }
}

/** The worker itself could not be had, as against an engine that failed inside it. */
export class WorkerFailure extends Error {
  toInitFailed(): HeadwiseError {
    return initFailed(this.message);
  }
}

// It said hello, and then no more.
class Stalled extends WorkerFailure {}

async function greet(
  worker: ThreadWorker,
  options: LoadOptions,
  readyDeadlineMs: number,
): Promise<ModuleInfo> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  waiting.add(worker);
  try {
    return await new Promise<ModuleInfo>((resolve, reject) => {
      const rejectAfter = (ms: number, Failure: typeof WorkerFailure, what: string): void => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          reject(new Failure(`the engine's worker ${what} within ${ms / 1000} s`));
        }, ms);
      };
      rejectAfter(helloDeadlineMs, WorkerFailure, 'did not answer');
      worker.onerror = (event) => {
        const message =
          (event as { message?: string } | null)?.message ?? 'its script did not load';
        reject(new WorkerFailure(`the engine's worker failed: ${message}`));
      };
      worker.onmessage = ({ data }) => {
        const message = data as FromWorker;
        if ('hello' in message) rejectAfter(readyDeadlineMs, Stalled, 'was not ready');
        else if ('ready' in message) resolve(message.ready);
        else if ('failed' in message) reject(fromErrorRecord(message.failed));
      };
      const role: WorkerRole = { role: 'host', options };
      worker.postMessage(role);
    });
  } finally {
    clearTimeout(timer);
    waiting.delete(worker);
  }
}
