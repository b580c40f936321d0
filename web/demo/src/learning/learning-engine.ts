// Demo, learning: the engine of the three lessons. Calls of one engine go one after the other, and training calls are many: the
// page's other numbers shall not wait for them, so the lessons have an engine of their own, started when one is first wanted.
import { createEngine, type Engine } from 'headwise';

let engine: Promise<Engine> | null = null;

export function learningEngine(): Promise<Engine> {
  engine ??= createEngine().catch((error: unknown) => {
    // The next one who asks may have more luck.
    engine = null;
    throw error;
  });
  return engine;
}
