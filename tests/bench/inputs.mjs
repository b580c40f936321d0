// Bench: a shape's inputs, the same floats in every process and page, so that outputs can be compared without sending inputs.

/** Uniform in [-1, 1), 24 bits, from a 32-bit counter hashed by the finalizer of MurmurHash3 (Appleby). */
export function fill(length, seed) {
  const data = new Float32Array(length);
  let counter = Math.imul(seed, 0x9e3779b9);
  for (let i = 0; i < length; i++) {
    counter = (counter + 0x9e3779b9) | 0;
    let x = counter;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    x ^= x >>> 16;
    data[i] = (x >> 8) / 0x800000;
  }
  return data;
}

/**
 * Attention and caches: q [B,H,L,D], k and v [B,G,S,D]; backward also dOutput [B,H,L,D]. A layer: x [L,E] and four kernels [E,E], scaled so that activations stay near 1;
 * columns of the first three, and rows of the output kernel, are head after head.
 * @param {import('./shapes.mjs').Shape} shape
 */
export function inputsOf({ kind, B, H, G, L, S, D, E }) {
  if (kind === 'training') return {}; // training-inputs.mjs
  if (kind !== 'layer') {
    const inputs = {
      q: fill(B * H * L * D, 1),
      k: fill(B * G * S * D, 2),
      v: fill(B * G * S * D, 3),
    };
    return kind === 'backward' ? { ...inputs, dOutput: fill(B * H * L * D, 4) } : inputs;
  }
  const kernel = (seed) => fill(E * E, seed).map((x) => x * Math.sqrt(3 / E));
  return {
    x: fill(L * E, 1),
    query: kernel(2),
    key: kernel(3),
    value: kernel(4),
    output: kernel(5),
  };
}

/** Rows first … first + count − 1 of each of `heads` blocks of `rows` rows. */
export function rowsOf(data, heads, rows, size, first, count) {
  const out = new Float32Array(heads * count * size);
  for (let h = 0; h < heads; h++) {
    const from = (h * rows + first) * size;
    out.set(data.subarray(from, from + count * size), h * count * size);
  }
  return out;
}

/** [heads, rows, size] → [rows, heads, size]. With rows and heads exchanged it is its own inverse. */
export function exchangeAxes(data, heads, rows, size) {
  const out = new Float32Array(data.length);
  for (let h = 0; h < heads; h++) {
    for (let r = 0; r < rows; r++) {
      const from = (h * rows + r) * size;
      out.set(data.subarray(from, from + size), (r * heads + h) * size);
    }
  }
  return out;
}
