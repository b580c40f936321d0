// Demo: a value that can be watched. All state of the page is a handful of these.

export interface Signal<T> {
  get(): T;
  set(value: T): void;
  /** Calls back at every change, and once at once; returns the way to stop. */
  watch(callback: (value: T) => void): () => void;
  /** Calls back at every change from now on. */
  changed(callback: (value: T) => void): () => void;
}

export function createSignal<T>(initial: T): Signal<T> {
  let value = initial;
  const watchers = new Set<(value: T) => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(callback) {
      watchers.add(callback);
      callback(value);
      return () => watchers.delete(callback);
    },
    changed(callback) {
      watchers.add(callback);
      return () => watchers.delete(callback);
    },
  };
}
