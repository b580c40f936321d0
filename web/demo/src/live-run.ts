// Demo: a computation that follows what the reader types. It waits for a pause in the typing, runs in the engine's worker, shows
// the last result only, and can be cancelled.
import { createSignal } from './signal.ts';
import { Latest } from './latest.ts';
import { reasonOf } from './engine-host.ts';

export type RunState =
  | { kind: 'idle' }
  | { kind: 'running' }
  | { kind: 'cancelled' }
  | { kind: 'failed'; reason: string };

/** Typing faster than this is one change. */
const PAUSE_MS = 120;

export class LiveRun<T> {
  readonly state = createSignal<RunState>({ kind: 'idle' });
  #latest = new Latest();
  #timer = 0;
  #work: (signal: AbortSignal) => Promise<T>;
  #show: (value: T) => void;

  constructor(work: (signal: AbortSignal) => Promise<T>, show: (value: T) => void) {
    this.#work = work;
    this.#show = show;
  }

  /** Runs after a pause in the typing. */
  soon(): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.now(), PAUSE_MS);
  }

  async now(): Promise<void> {
    window.clearTimeout(this.#timer);
    this.state.set({ kind: 'running' });
    const outcome = await this.#latest.run(this.#work);
    if (outcome.kind === 'stale') return;
    if (outcome.kind === 'done') {
      this.#show(outcome.value);
      this.state.set({ kind: 'idle' });
    } else if (outcome.kind === 'cancelled') {
      this.state.set({ kind: 'cancelled' });
    } else {
      this.state.set({ kind: 'failed', reason: reasonOf(outcome.error) });
    }
  }

  cancel(): void {
    window.clearTimeout(this.#timer);
    this.#latest.cancel();
  }
}
