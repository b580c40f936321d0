// Wasm: starts workers, the Web's or Node's, and fills the core's thread pool with them before any call, so that no call
// ever waits for a worker to load. Whatever fails ends, before a deadline, with fewer threads and a reason.
import { initFailed } from '../errors.js';
import { messageOf, resolveUrl } from './files.js';
import type { ThreadLibrary, ThreadWorker, Variant } from './glue.js';
import { nodeModule, type NodeWorker, type NodeWorkerThreads } from './node.js';

// Start-up as a whole stays under 10 s: it goes on with the workers that are there when none has answered for so long, or
// after so long in all.
const silenceMs = 4000;
const threadDeadlineMs = 8000;
// So many are loading at a time: all 63 at once would delay each other until none is there in time.
const loadingAtOnce = 8;

/** The first message to a worker: what it is to be. */
export type WorkerRole = { role: 'thread'; variant: Variant } | { role: 'host'; options: unknown };

/** Starts workers that run `worker.js`. */
export type StartWorker = () => ThreadWorker;

/** How to start workers here; rejects with the reason when it cannot be done. */
export async function workerStarter(workerUrl: string | URL | undefined): Promise<StartWorker> {
  // A page or a Web worker. Electron's renderers have both kinds, of which only this one works there.
  const isWeb = typeof document === 'object' || 'WorkerGlobalScope' in globalThis;
  if (!isWeb) {
    const threads = (await nodeModule('worker_threads')) as NodeWorkerThreads | undefined;
    if (threads !== undefined) {
      const url = workerUrl === undefined ? scriptBeside() : await resolveUrl(workerUrl);
      return () =>
        new WrappedNodeWorker(new threads.Worker(url, { name: 'headwise', execArgv: [] }));
    }
  }
  if (typeof Worker !== 'function') throw initFailed('this platform has no workers');
  if (workerUrl === undefined) return startWebWorker;
  const url = await resolveUrl(workerUrl);
  return () => startWebWorkerFrom(url);
}

// This is not the form that bundlers know: they would take a second one for a second worker, or warn.
function scriptBeside(): URL {
  const here = import.meta.url;
  return new URL('./worker.js', here);
}

// Bundlers know this very form and bundle the worker.
function startWebWorker(): ThreadWorker {
  try {
    return new Worker(new URL('./worker.js', import.meta.url), {
      type: 'module',
      name: 'headwise',
    }) as ThreadWorker;
  } catch {
    return startBlobWorker(scriptBeside());
  }
}

function startWebWorkerFrom(url: URL): ThreadWorker {
  try {
    return new Worker(url, { type: 'module', name: 'headwise' }) as ThreadWorker;
  } catch {
    return startBlobWorker(url);
  }
}

// A worker's script must be of the page's origin; a module that it imports need not be (with CORS).
function startBlobWorker(url: URL): ThreadWorker {
  const script = new Blob([`import ${JSON.stringify(url.href)};`], { type: 'text/javascript' });
  const blobUrl = URL.createObjectURL(script);
  const worker = new Worker(blobUrl, { type: 'module', name: 'headwise' });
  // Not before the worker has fetched it; a moment later it is garbage.
  setTimeout(() => URL.revokeObjectURL(blobUrl), 4 * silenceMs);
  return worker as ThreadWorker;
}

// Node's worker with the Web worker's face.
class WrappedNodeWorker implements ThreadWorker {
  onmessage: ThreadWorker['onmessage'] = null;
  onerror: ThreadWorker['onerror'] = null;
  onexit: (() => void) | null = null;
  readonly #worker: NodeWorker;

  constructor(worker: NodeWorker) {
    this.#worker = worker;
    worker.on('message', (data) => this.onmessage?.({ data }));
    worker.on('error', (error) => this.onerror?.(error));
    worker.on('exit', () => this.onexit?.());
  }
  postMessage(message: unknown, transfer?: readonly unknown[]): void {
    this.#worker.postMessage(message, transfer);
  }
  terminate(): void {
    this.onexit = null;
    void this.#worker.terminate();
  }
  ref(): void {
    this.#worker.ref();
  }
  unref(): void {
    this.#worker.unref();
  }
}

/** Why this platform runs one thread only; undefined when it can have more. */
export function whyOneThread(sharedMemory: boolean): string | undefined {
  // Browsers have this flag, other runtimes do not; without isolation memory cannot be sent to workers.
  if ((globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) {
    return (
      'the page is not cross-origin isolated; serve it with the headers ' +
      '"Cross-Origin-Opener-Policy: same-origin" and "Cross-Origin-Embedder-Policy: require-corp"'
    );
  }
  if (typeof SharedArrayBuffer !== 'function') return 'this platform has no SharedArrayBuffer';
  if (!sharedMemory) return 'this platform grants no shared WebAssembly memory';
  return undefined;
}

/** How many threads this machine offers, as far as it says. */
export async function defaultThreads(): Promise<number> {
  const { navigator } = globalThis as { navigator?: { hardwareConcurrency?: number } };
  let cores = navigator?.hardwareConcurrency;
  if (cores === undefined) {
    const os = (await nodeModule('os')) as
      { availableParallelism?(): number; cpus(): unknown[] } | undefined;
    cores = os?.availableParallelism?.() ?? os?.cpus().length;
  }
  return Math.min(Math.max(cores ?? 1, 1), 16);
}

/**
 * Loads up to `count` workers into the pool's reserve; resolves with how many are there, and why if fewer.
 * Those that failed or did not answer in time are terminated.
 */
export async function loadThreads(
  library: ThreadLibrary,
  count: number,
  variant: Variant,
  workerUrl: string | URL | undefined,
): Promise<{ loaded: number; reason?: string }> {
  let reason: string | undefined;
  const loading = new Set<ThreadWorker>();
  const loaded: ThreadWorker[] = [];
  try {
    const start = await workerStarter(workerUrl);
    await new Promise<void>((resolve, reject) => {
      let silence: ReturnType<typeof setTimeout> | undefined;
      const stop = (): void => {
        clearTimeout(silence);
        clearTimeout(deadline);
      };
      const finish = (why?: string): void => {
        stop();
        reason = why;
        resolve();
      };
      const fail = (error: unknown): void => {
        stop();
        reject(error as Error);
      };
      const late = (ms: number) =>
        setTimeout(() => finish(`workers did not answer within ${ms / 1000} s`), ms);
      const deadline = late(threadDeadlineMs);
      const proceed = (): void => {
        clearTimeout(silence);
        if (loaded.length === count) {
          finish();
          return;
        }
        silence = late(silenceMs);
        try {
          while (loading.size < loadingAtOnce && loading.size + loaded.length < count) {
            loading.add(loadThread(library, start(), variant, whenLoaded, finish));
          }
        } catch (error) {
          fail(error);
        }
      };
      const whenLoaded = (worker: ThreadWorker): void => {
        if (!loading.delete(worker)) return;
        loaded.push(worker);
        proceed();
      };
      proceed();
    });
  } catch (error) {
    reason = `a worker could not be started: ${messageOf(error)}`;
  }
  for (const worker of loading) worker.terminate();
  loading.clear();
  for (const worker of loaded) worker.unref?.();
  library.unusedWorkers.push(...loaded);
  return reason === undefined ? { loaded: loaded.length } : { loaded: loaded.length, reason };
}

function loadThread(
  library: ThreadLibrary,
  worker: ThreadWorker,
  variant: Variant,
  whenLoaded: (worker: ThreadWorker) => void,
  whenFailed: (why: string) => void,
): ThreadWorker {
  const role: WorkerRole = { role: 'thread', variant };
  worker.postMessage(role);
  void library.loadWasmModuleToWorker(worker).then(() => whenLoaded(worker));
  worker.onerror = (event) => {
    whenFailed(
      `a worker failed: ${(event as { message?: string } | null)?.message ?? 'its script did not load'}`,
    );
  };
  return worker;
}
