// Tests: attention by the plain formula in doubles, one row at a time, for tensors [B,H,L,D]: what the package is compared
// with over random options. Only what the fuzz draws is here.

const at = (tensor, ...index) => {
  let offset = 0;
  index.forEach((i, axis) => (offset = offset * tensor.shape[axis] + i));
  return tensor.data[offset];
};

// Right-aligned broadcasting of `tensor` to [b,h,i,j].
const broadcastAt = (tensor, index) => {
  const tail = index.slice(4 - tensor.shape.length);
  return at(tensor, ...tail.map((i, axis) => (tensor.shape[axis] === 1 ? 0 : i)));
};

/** `{ output, weights, logSumExp }` as flat arrays of doubles. */
export function plainAttention(q, k, v, options = {}) {
  const [B, H, L, D] = q.shape;
  const [, G, S] = k.shape;
  const Dv = v.shape[3];
  const {
    scale = 1 / Math.sqrt(D),
    softcap = 0,
    bias,
    mask,
    keyPaddingMask,
    kvLengths,
    qLengths,
  } = options;
  const {
    causal = false,
    causalOffset,
    window = [Infinity, Infinity],
    alibiSlopes,
    sinks,
  } = options;
  const result = { output: [], weights: [], logSumExp: [] };
  for (let b = 0; b < B; b++) {
    const keys = kvLengths?.[b] ?? S;
    const queries = qLengths?.[b] ?? L;
    const given = typeof causalOffset === 'number' ? causalOffset : causalOffset?.[b];
    const offset = given ?? keys - queries;
    for (let h = 0; h < H; h++) {
      const g = Math.floor((h * G) / H);
      for (let i = 0; i < L; i++) {
        const scores = [];
        for (let j = 0; j < S; j++) {
          let score = 0;
          for (let d = 0; d < D; d++) score += at(q, b, h, i, d) * at(k, b, g, j, d);
          score *= scale;
          if (softcap > 0) score = softcap * Math.tanh(score / softcap);
          if (bias) score += broadcastAt(bias, [b, h, i, j]);
          if (alibiSlopes) score -= alibiSlopes[h] * Math.abs(i + offset - j);
          const visible =
            i < queries &&
            j < keys &&
            (!causal || j <= i + offset) &&
            j >= i + offset - window[0] &&
            j <= i + offset + window[1] &&
            (!mask || broadcastAt(mask, [b, h, i, j]) !== 0) &&
            (!keyPaddingMask || at(keyPaddingMask, b, j) !== 0);
          scores.push(visible ? score : -Infinity);
        }
        const largest = Math.max(-Infinity, ...scores);
        const exps = scores.map((score) => (score === -Infinity ? 0 : Math.exp(score - largest)));
        const sum = exps.reduce((x, y) => x + y, 0);
        const sink = sinks && sum > 0 ? Math.exp(sinks[h] - largest) : 0;
        const weights = exps.map((e) => (sum === 0 ? 0 : e / (sum + sink)));
        result.weights.push(...weights);
        result.logSumExp.push(sum === 0 ? -Infinity : largest + Math.log(sum));
        for (let d = 0; d < Dv; d++) {
          result.output.push(
            weights.reduce((x, w, j) => (w === 0 ? x : x + w * at(v, b, g, j, d)), 0),
          );
        }
      }
    }
  }
  return result;
}
