// Wasm: Node's own modules where the runtime has them (Node, Deno, Bun), found by feature. Bundlers see no import of them.

interface NodeProcess {
  getBuiltinModule?(name: string): unknown;
  versions?: { node?: string };
}

/** The module `node:<name>`, or undefined where there is none. */
export async function nodeModule(name: string): Promise<unknown> {
  const { process } = globalThis as { process?: NodeProcess };
  if (typeof process?.getBuiltinModule === 'function')
    return process.getBuiltinModule(`node:${name}`);
  // Node before 20.16. A bundler's stand-in for `process` names no version.
  if (process?.versions?.node === undefined) return undefined;
  try {
    const specifier = `node:${name}`;
    return await import(/* @vite-ignore */ /* webpackIgnore: true */ specifier);
  } catch {
    return undefined;
  }
}

/** The parts of `node:worker_threads` in use. */
export interface NodeWorkerThreads {
  Worker: new (url: URL, options: object) => NodeWorker;
  isMainThread: boolean;
  parentPort: NodePort | null;
}

export interface NodePort {
  on(event: 'message', listener: (data: unknown) => void): void;
  postMessage(message: unknown, transfer?: readonly unknown[]): void;
}

export interface NodeWorker extends NodePort {
  on(event: 'message' | 'error' | 'exit', listener: (data: unknown) => void): void;
  terminate(): Promise<unknown>;
  ref(): void;
  unref(): void;
}
