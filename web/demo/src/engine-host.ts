// Demo: the one engine of the page, what it said at its start, and how long its calls took.
import { createEngine, type Engine } from 'headwise';
import type { Timing } from '../../examples/lib/clock.mjs';
import { t } from './i18n/index.ts';
import { createSignal } from './signal.ts';

export type EngineState =
  { kind: 'starting' } | { kind: 'ready'; engine: Engine } | { kind: 'failed'; reason: string };

export const engineState = createSignal<EngineState>({ kind: 'starting' });

/** Timings of the last walk-through, in order. */
export const walkTimings = createSignal<readonly Timing[]>([]);

/** A reason of the package's in the reader's language. */
export function reasonWords(code: string | undefined, words: string): string {
  return (code === undefined ? undefined : t().engine.reasons[code]) ?? words;
}

export function reasonOf(error: unknown): string {
  const { gpuReasonCode } = (error ?? {}) as { gpuReasonCode?: string };
  return reasonWords(gpuReasonCode, error instanceof Error ? error.message : String(error));
}

export const BACKENDS = ['auto', 'wasm', 'webgpu'] as const;
export type Backend = (typeof BACKENDS)[number];

/** Starts another engine in the first one's place. When that cannot be had, the first stays and the reason is returned. */
export async function switchBackend(backend: Backend): Promise<string | undefined> {
  const before = engineState.get();
  try {
    const engine = await createEngine({ backend });
    engineState.set({ kind: 'ready', engine });
  } catch (error) {
    return reasonOf(error);
  }
  if (before.kind === 'ready') before.engine.dispose();
  return undefined;
}

export async function startEngine(): Promise<void> {
  engineState.set({ kind: 'starting' });
  try {
    engineState.set({ kind: 'ready', engine: await createEngine() });
  } catch (error) {
    engineState.set({ kind: 'failed', reason: reasonOf(error) });
  }
}

let turn: Promise<unknown> = Promise.resolve();

/**
 * Calls back with the engine as soon as there is one, and with the next after a new start. First works go one after the other, in
 * the order of the page: what the reader sees first is there first, and no step's time holds another's.
 */
export function withEngine(callback: (engine: Engine) => Promise<void>): void {
  engineState.watch((state) => {
    if (state.kind === 'ready') turn = turn.then(() => callback(state.engine));
  });
}
