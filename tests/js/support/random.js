// Tests: seeded random numbers and tensors, the same on every run.

/** A generator of numbers in [0, 1): a linear congruence is random enough for inputs. */
export function randomSource(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** `{ data, shape }` with numbers in [-1, 1). */
export function randomTensor(shape, seed) {
  const next = randomSource(seed);
  const length = shape.reduce((a, b) => a * b, 1);
  return { data: Float32Array.from({ length }, () => 2 * next() - 1), shape };
}
