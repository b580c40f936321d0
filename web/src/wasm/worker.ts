// Wasm: the one script of all workers, the Web's and Node's. The first message says what it is to be: a thread of the core's
// pool, or the host of a whole engine.
import { toErrorRecord } from '../errors.js';
import { glues } from './glue.js';
import { LocalHost } from './host.js';
import { holdLock } from './locks.js';
import type { LoadOptions } from './loader.js';
import { nodeModule, type NodePort, type NodeWorkerThreads } from './node.js';
import { buffersOf, type FromWorker, type ToWorker } from './protocol.js';
import type { WorkerRole } from './threads.js';

/** A worker's global scope, as far as it matters here. */
interface Scope {
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(message: unknown, transfer?: readonly unknown[]): void;
  name?: string;
  location?: { href: string };
  self?: unknown;
  WorkerGlobalScope?: unknown;
}

const scope = globalThis as unknown as Scope;

// In a page this script does nothing: it is for workers.
if (typeof document === 'undefined') void listen();

// Messages wait until the script has run and, in Node's port, until there is a listener.
async function listen(): Promise<void> {
  const threads = (await nodeModule('worker_threads')) as NodeWorkerThreads | undefined;
  const port: NodePort | null | undefined = threads?.parentPort;
  scope.onmessage = ({ data }) => begin(data as WorkerRole);
  if (port === null || port === undefined) return;
  // Node's worker, or another runtime's likeness of it, gets the Web worker's face.
  scope.self ??= globalThis;
  scope.postMessage = (message, transfer) => port.postMessage(message, transfer);
  port.on('message', (data) => scope.onmessage?.({ data }));
}

function begin(role: WorkerRole): void {
  if (role.role === 'thread') {
    // These tell the glue that it is a thread; it then takes over onmessage.
    scope.WorkerGlobalScope ??= class {};
    scope.name = 'em-pthread';
    void glues[role.variant]();
  } else {
    void hostEngine(role.options as LoadOptions);
  }
}

// Threads run this same script. Where it is, it knows itself: a bundle made by webpack has no name for the chunk that it is in.
// A blob does not know: it only imports the script, and may be revoked by now.
function ownUrl(): string | undefined {
  const href = 'WorkerGlobalScope' in scope ? scope.location?.href : undefined;
  return href?.startsWith('blob:') === true ? undefined : href;
}

async function hostEngine(options: LoadOptions): Promise<void> {
  const reply = (message: FromWorker, transfer: ArrayBuffer[] = []): void =>
    scope.postMessage(message, transfer);
  const aborts = new Map<number, AbortController>();
  const early: ToWorker[] = [];
  scope.onmessage = ({ data }) => early.push(data as ToWorker);
  reply({ hello: true });
  let host: LocalHost;
  try {
    host = await LocalHost.start({ ...options, workerUrl: options.workerUrl ?? ownUrl() });
  } catch (error) {
    reply({ failed: toErrorRecord(error) });
    return;
  }

  const serve = async (message: ToWorker): Promise<void> => {
    const { id } = message;
    if ('abort' in message) {
      aborts.get(id)?.abort();
      return;
    }
    try {
      if ('memory' in message) {
        reply({ id, usage: await host.memory() });
        return;
      }
      const controller = new AbortController();
      aborts.set(id, controller);
      const response = await host.run(message.request, controller.signal);
      reply({ id, response }, buffersOf(response));
    } catch (error) {
      reply({ id, error: toErrorRecord(error) });
    } finally {
      aborts.delete(id);
    }
  };
  scope.onmessage = ({ data }) => void serve(data as ToWorker);
  for (const message of early) void serve(message);
  const lock = await holdLock();
  reply({ ready: lock === undefined ? host.info : { ...host.info, lock } });
}
