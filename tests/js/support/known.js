// Tests: one call whose answer is known, to show that an engine still works.
import { logWeights, numbers } from '../tricks.js';

/** Weights 1/6, 2/6, 3/6 on 6, 12, 18: 14. */
export async function expectWorks(engine) {
  const { q, k, v } = logWeights([1, 2, 3], [6, 12, 18]);
  const { output } = await engine.attention(q, k, v, { scale: 1 });
  expect(numbers(output)[0]).toBeCloseTo(14, 4);
}

/** The error that a function throws or rejects with; fails when there is none. */
export async function errorOf(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('no error was thrown');
}
