// Wasm: starts workers, the Web's or Node's, and fills the core's thread pool with them before any call, so that no call
// ever waits for a worker to load. Whatever fails ends, before a deadline, with fewer threads and a reason.
import { initFailed } from '../errors.js';
import { messageOf, resolveUrl } from './files.js';
import type { ThreadLibrary, ThreadWorker, Variant } from './glue.js';
import { nodeModule, type NodeWorker, type NodeWorkerThreads } from './node.js';

/** Workers that have not answered after this long are given up. Start-up as a whole stays under 10 s. */
export const threadDeadlineMs = 4000;

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
      const url = workerUrl === undefined ? new URL(scriptName, import.meta.url) : await resolveUrl(workerUrl);
      return () => new WrappedNodeWorker(new threads.Worker(url, { name: 'headwise', execArgv: [] }));
    }
  }
  if (typeof Worker !== 'function') throw initFailed('this platform has no workers');
  if (workerUrl === undefined) return startWebWorker;
  const url = await resolveUrl(workerUrl);
  return () => startWebWorkerFrom(url);
}

const scriptName = './worker.js';

// Bundlers know this very form and bundle the worker.
function startWebWorker(): ThreadWorker {
  try {
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'headwise' }) as ThreadWorker;
  } catch {
    const here = import.meta.url;
    return startBlobWorker(new URL(scriptName, here));
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
  setTimeout(() => URL.revokeObjectURL(blobUrl), 2 * threadDeadlineMs);
  return worker as ThreadWorker;
}

// Node's worker with the Web worker's face.
class WrappedNodeWorker implements ThreadWorker {
  onmessage: ThreadWorker['onmessage'] = null;
  onerror: ThreadWorker['onerror'] = null;
  readonly #worker: NodeWorker;

  constructor(worker: NodeWorker) {
    this.#worker = worker;
    worker.on('message', (data) => this.onmessage?.({ data }));
    worker.on('error', (error) => this.onerror?.(error));
  }
  postMessage(message: unknown, transfer?: readonly unknown[]): void {
    this.#worker.postMessage(message, transfer);
  }
  terminate(): void {
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
    const os = (await nodeModule('os')) as { availableParallelism?(): number; cpus(): unknown[] } | undefined;
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
  const loads: Promise<void>[] = [];
  const loaded = new Set<ThreadWorker>();
  const workers: ThreadWorker[] = [];
  try {
    const start = await workerStarter(workerUrl);
    for (let i = 0; i < count; i++) {
      const worker = start();
      workers.push(worker);
      const role: WorkerRole = { role: 'thread', variant };
      worker.postMessage(role);
      loads.push(
        new Promise((resolve) => {
          void library.loadWasmModuleToWorker(worker).then(() => {
            loaded.add(worker);
            resolve();
          });
          worker.onerror = (event) => {
            reason ??= `a worker failed: ${(event as { message?: string } | null)?.message ?? 'its script did not load'}`;
            resolve();
          };
        }),
      );
    }
  } catch (error) {
    reason ??= `a worker could not be started: ${messageOf(error)}`;
  }
  await withDeadline(Promise.all(loads), threadDeadlineMs);
  for (const worker of workers) {
    if (loaded.has(worker)) {
      worker.unref?.();
      library.unusedWorkers.push(worker);
    } else {
      worker.terminate();
    }
  }
  if (loaded.size === count) return { loaded: count };
  reason ??= `workers did not answer within ${threadDeadlineMs / 1000} s`;
  return { loaded: loaded.size, reason };
}

/** Resolves with true when the promise is settled, with false after `ms`. */
export async function withDeadline(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
