// Conformance: the reshapes that other libraries' attention operators do around the attention itself.

export const count = (shape) => shape.reduce((a, b) => a * b, 1);

/** [B,L,H·D] to [B,H,L,D]. */
export function splitHeads({ data, shape: [batch, length, width] }, heads) {
  const dim = width / heads;
  const out = new Float32Array(data.length);
  let to = 0;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < length; i++)
        for (let d = 0; d < dim; d++) out[to++] = data[(b * length + i) * width + h * dim + d];
  return { data: out, shape: [batch, heads, length, dim] };
}

/** [B,H,L,D] to [B,L,H·D]. */
export function mergeHeads({ data, shape: [batch, heads, length, dim] }) {
  const out = new Float32Array(data.length);
  let to = 0;
  for (let b = 0; b < batch; b++)
    for (let i = 0; i < length; i++)
      for (let h = 0; h < heads; h++)
        for (let d = 0; d < dim; d++) out[to++] = data[((b * heads + h) * length + i) * dim + d];
  return { data: out, shape: [batch, length, heads * dim] };
}

/** Past before present along the third axis of [B,H,S,D]; without a past, the present. */
export function concatenate(past, present) {
  if (!past) return present;
  const [batch, heads, before, dim] = past.shape;
  const after = present.shape[2];
  const data = new Float32Array(batch * heads * (before + after) * dim);
  for (let head = 0; head < batch * heads; head++) {
    const at = head * (before + after) * dim;
    data.set(past.data.slice(head * before * dim, (head + 1) * before * dim), at);
    data.set(present.data.slice(head * after * dim, (head + 1) * after * dim), at + before * dim);
  }
  return { data, shape: [batch, heads, before + after, dim] };
}

/** Columns from … to of the last axis. */
export function columns({ data, shape }, from, to) {
  const width = shape.at(-1);
  const rows = data.length / width;
  const out = new Float32Array(rows * (to - from));
  for (let r = 0; r < rows; r++)
    out.set(data.slice(r * width + from, r * width + to), r * (to - from));
  return { data: out, shape: [...shape.slice(0, -1), to - from] };
}

/** The last axis grown to `width`, filled up with `filler`. */
export function padded({ data, shape }, width, filler) {
  const old = shape.at(-1);
  if (old === width) return { data, shape };
  const rows = count(shape) / old;
  const out = new data.constructor(rows * width).fill(filler);
  for (let r = 0; r < rows; r++) out.set(data.slice(r * old, (r + 1) * old), r * width);
  return { data: out, shape: [...shape.slice(0, -1), width] };
}

/** Adds a bias of the last axis' length. */
export function withBias({ data, shape }, bias) {
  return { data: data.map((x, i) => x + bias[i % bias.length]), shape };
}
