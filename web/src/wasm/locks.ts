// Wasm: Web Locks, by which a page learns that its worker has ended. Node tells it by an event and does without.

/** The parts of `navigator.locks` in use. */
interface Locks {
  request(name: string, options: { signal?: AbortSignal }, held: () => unknown): Promise<unknown>;
}

/** Undefined where there are none, as in a page that was not served securely. */
export function lockManager(): Locks | undefined {
  const { document, WorkerGlobalScope, navigator } = globalThis as {
    document?: unknown;
    WorkerGlobalScope?: unknown;
    navigator?: { locks?: Locks };
  };
  const isWeb = document !== undefined || WorkerGlobalScope !== undefined;
  return isWeb ? navigator?.locks : undefined;
}

/** Takes a lock of a new name until this worker ends. Resolves to the name, or undefined where none can be had. */
export function holdLock(): Promise<string | undefined> {
  const name = `headwise ${performance.timeOrigin} ${Math.random()}`;
  return new Promise((resolve) => {
    const locks = lockManager();
    if (locks === undefined) {
      resolve(undefined);
      return;
    }
    const asked = locks.request(name, {}, () => {
      resolve(name);
      return new Promise(() => undefined); // for ever
    });
    asked.catch(() => resolve(undefined));
  });
}
