// Tests, browser: what the tests' pages and workers compute: a number known by hand.
import { createEngine, tensor } from '/dist/index.js';

/** Weights 1 : 2 : 3 over the values 6, 12, 18: 14. */
export async function known(engine) {
  const k = tensor([0, Math.log(2), Math.log(3)], [3, 1]);
  const v = tensor([6, 12, 18], [3, 1]);
  const { output } = await engine.attention(tensor([1], [1, 1]), k, v, { scale: 1 });
  return output.data[0];
}

/** The known number from an engine with these options. Resolves to { value, info }, or { error } in words. */
export async function compute(options) {
  try {
    const engine = await createEngine(options);
    const value = await known(engine);
    engine.dispose();
    return { value, info: engine.info };
  } catch (error) {
    return { error: String(error) };
  }
}

/** Self-attention that takes seconds where `length` is some thousands: arguments for `engine.attention`. */
export function heavy(length) {
  const data = Float32Array.from({ length: 8 * length * 64 }, (_, i) => ((i * 37) % 101) / 50 - 1);
  const x = tensor(data, [1, 8, length, 64]);
  return [x, x, x];
}
