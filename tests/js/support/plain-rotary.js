// Tests: rotary embeddings by the plain formula in doubles.

/** f_i without a scaling rule. */
export const plainFrequency = (base, dim) => (i) => base ** ((-2 * i) / dim);

/** The formula, pair by pair, for [B,H,L,D]; `frequencyOf` and `positionOf` say the angle. */
export function plainRotary({ data, shape }, positionOf, frequencyOf, options = {}) {
  const [B, H, L, D] = shape;
  const { dim = D, interleaved = false, magnitude = 1 } = options;
  const out = Float32Array.from(data);
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      for (let l = 0; l < L; l++) {
        const row = ((b * H + h) * L + l) * D;
        for (let i = 0; i < dim / 2; i++) {
          const [x, y] = interleaved ? [2 * i, 2 * i + 1] : [i, i + dim / 2];
          const angle = positionOf(b, l) * frequencyOf(i);
          const [cos, sin] = [Math.cos(angle) * magnitude, Math.sin(angle) * magnitude];
          out[row + x] = data[row + x] * cos - data[row + y] * sin;
          out[row + y] = data[row + x] * sin + data[row + y] * cos;
        }
      }
    }
  }
  return out;
}
