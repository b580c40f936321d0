// Demo, learning: one lesson on this page: its model, where the training stands, and what may be done now: begin, pause, go on,
// stop, or take the model that was stored.
import type { Transformer } from 'headwise';
import { createSignal } from '../signal.ts';
import { reasonOf } from '../engine-host.ts';
import { learn, type Lesson } from '../../../examples/lib/learning/lesson.mjs';
import { learningEngine } from './learning-engine.ts';

export type LessonState =
  | { kind: 'empty' }
  | { kind: 'loading' }
  | { kind: 'stored' }
  | { kind: 'running' }
  | { kind: 'paused' }
  | { kind: 'stopped' }
  | { kind: 'finished' }
  | { kind: 'failed'; reason: string };

export interface Progress {
  step: number;
  steps: number;
  epoch: number;
  /** Of training alone. */
  seconds: number;
}

/** Told at every step, before the next: what a section keeps of it. */
export type StepWatcher = (model: Transformer, step: number) => Promise<void>;

export class Classroom<M> {
  readonly state = createSignal<LessonState>({ kind: 'empty' });
  readonly progress = createSignal<Progress | null>(null);
  readonly measures = createSignal<M | null>(null);
  /** Another number whenever the model has changed enough to be asked anew. */
  readonly version = createSignal(0);
  /** Of every step since the beginning. */
  readonly losses: number[] = [];
  model: Transformer | null = null;
  /** Called when a model begins from nothing, and at each of its steps. */
  onBegin: (() => void) | null = null;
  onStep: StepWatcher | null = null;
  readonly lesson: Lesson<M>;
  #stored: string;
  #controller: AbortController | null = null;
  #gate: { promise: Promise<void>; open: () => void } | null = null;
  /** Of the runs before the present one. */
  #secondsBefore = 0;
  /** A newer model makes older work stale. */
  #generation = 0;

  constructor(lesson: Lesson<M>, stored: string) {
    this.lesson = lesson;
    this.#stored = stored;
  }

  get busy(): boolean {
    return ['loading', 'running', 'paused'].includes(this.state.get().kind);
  }

  /** From nothing, whatever was there. */
  async begin(): Promise<void> {
    const generation = this.#leave();
    this.losses.length = 0;
    this.#secondsBefore = 0;
    this.measures.set(null);
    this.progress.set(null);
    this.state.set({ kind: 'loading' });
    try {
      const engine = await learningEngine();
      if (generation !== this.#generation) return;
      this.#take(engine.transformer(this.lesson.config));
      this.onBegin?.();
    } catch (error) {
      this.#fail(generation, error);
      return;
    }
    await this.#run(generation);
  }

  pause(): void {
    if (this.state.get().kind !== 'running' || this.#gate) return;
    let open = () => {};
    const promise = new Promise<void>((resolve) => (open = resolve));
    this.#gate = { promise, open };
    this.state.set({ kind: 'paused' });
  }

  /** Whether a training has begun that can go on from where it stands: a step that failed has changed nothing. */
  get resumable(): boolean {
    const { kind } = this.state.get();
    const begun = this.model !== null && this.losses.length > 0;
    return kind === 'paused' || (begun && (kind === 'stopped' || kind === 'failed'));
  }

  /** After a pause, a stop, or a step that failed. */
  async resume(): Promise<void> {
    const { kind } = this.state.get();
    if (kind === 'paused') {
      this.state.set({ kind: 'running' });
      this.#gate?.open();
      this.#gate = null;
    } else if (this.resumable) {
      await this.#run(this.#generation);
    }
  }

  stop(): void {
    this.#controller?.abort(new DOMException('Stopped by the reader', 'AbortError'));
    this.#gate?.open();
    this.#gate = null;
  }

  /** The model that was trained before and stored beside the page. */
  async takeStored(): Promise<void> {
    const generation = this.#leave();
    this.losses.length = 0;
    this.progress.set(null);
    this.state.set({ kind: 'loading' });
    try {
      const [engine, response] = await Promise.all([learningEngine(), fetch(this.#stored)]);
      if (!response.ok) throw new Error(`${this.#stored}: ${response.status}`);
      const file = await response.arrayBuffer();
      if (generation !== this.#generation) return;
      const model = engine.transformer(this.lesson.config);
      await model.load(file);
      const measures = await this.lesson.measure(model);
      if (generation !== this.#generation) {
        model.dispose();
        return;
      }
      this.#take(model);
      this.measures.set(measures);
      this.state.set({ kind: 'stored' });
      this.#changed();
    } catch (error) {
      this.#fail(generation, error);
    }
  }

  #leave(): number {
    this.stop();
    this.#controller = null;
    return ++this.#generation;
  }

  #take(model: Transformer): void {
    this.model?.dispose();
    this.model = model;
  }

  #changed(): void {
    this.version.set(this.version.get() + 1);
  }

  #fail(generation: number, error: unknown): void {
    if (generation === this.#generation)
      this.state.set({ kind: 'failed', reason: reasonOf(error) });
  }

  async #run(generation: number): Promise<void> {
    const model = this.model;
    if (!model) return;
    const controller = new AbortController();
    this.#controller = controller;
    this.state.set({ kind: 'running' });
    const { lesson } = this;
    const steps = lesson.epochs * lesson.stepsPerEpoch;
    let spent = 0;
    let last = performance.now();
    try {
      for await (const event of learn(model, lesson, controller.signal)) {
        if (generation !== this.#generation) return;
        if (event.kind === 'step') {
          const { step, loss } = event.progress;
          spent += (performance.now() - last) / 1000;
          this.losses.push(loss);
          await this.onStep?.(model, step);
          if (generation !== this.#generation) return;
          this.progress.set({
            step,
            steps,
            epoch: event.epoch,
            seconds: this.#secondsBefore + spent,
          });
        } else {
          this.measures.set(event.measures);
          this.#changed();
        }
        if (this.#gate) await this.#gate.promise;
        controller.signal.throwIfAborted();
        last = performance.now();
      }
      this.state.set({ kind: 'finished' });
    } catch (error) {
      if (generation !== this.#generation) return;
      if (controller.signal.aborted) {
        this.state.set({ kind: 'stopped' });
        this.#changed();
      } else this.#fail(generation, error);
    } finally {
      this.#secondsBefore += spent;
    }
  }
}
