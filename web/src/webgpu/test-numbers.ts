// WebGPU: numbers that the device is tried with, the same at every start.

/** Numbers between −1.5 and 1.5. */
export const floats = (length: number, seed: number): Float32Array => {
  let state = seed >>> 0;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 31 - 1) * 1.5;
  });
};
