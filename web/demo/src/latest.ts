// Demo: of several runs only the last one counts. A new run aborts the one before; what arrives late is dropped.

/** What became of a run. `stale`: a newer one has begun, and nothing is to be shown. */
export type Outcome<T> =
  | { kind: 'done'; value: T }
  | { kind: 'stale' }
  | { kind: 'cancelled' }
  | { kind: 'failed'; error: unknown };

export class Latest {
  #controller: AbortController | null = null;

  get running(): boolean {
    return this.#controller !== null;
  }

  async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<Outcome<T>> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      const value = await work(controller.signal);
      if (this.#controller !== controller)
        return controller.signal.aborted ? this.#ended(controller) : { kind: 'stale' };
      return { kind: 'done', value };
    } catch (error) {
      if (controller.signal.aborted) return this.#ended(controller);
      if (this.#controller !== controller) return { kind: 'stale' };
      return { kind: 'failed', error };
    } finally {
      if (this.#controller === controller) this.#controller = null;
    }
  }

  /** Gives up the run in progress; it comes back as `cancelled`. */
  cancel(): void {
    this.#controller?.abort(new DOMException('Cancelled by the reader', 'AbortError'));
    this.#cancelled = this.#controller;
    this.#controller = null;
  }

  #cancelled: AbortController | null = null;

  #ended(controller: AbortController): { kind: 'cancelled' } | { kind: 'stale' } {
    return this.#cancelled === controller ? { kind: 'cancelled' } : { kind: 'stale' };
  }
}
