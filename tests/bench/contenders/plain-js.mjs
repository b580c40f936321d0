// Bench: what one writes without a library: three loops over typed arrays, one query at a time.

function attend(q, k, v, output, { H, G, L, S, D, causal, window }) {
  const scale = 1 / Math.sqrt(D);
  const weights = new Float32Array(S);
  for (let h = 0; h < H; h++) {
    const kv = Math.floor((h * G) / H) * S * D;
    for (let i = 0; i < L; i++) {
      const row = (h * L + i) * D;
      const last = causal ? Math.min(S, i + S - L + 1) : S;
      const first = window ? Math.max(0, last - window) : 0;
      let max = -Infinity;
      for (let j = first; j < last; j++) {
        let dot = 0;
        for (let d = 0; d < D; d++) dot += q[row + d] * k[kv + j * D + d];
        weights[j] = dot * scale;
        if (weights[j] > max) max = weights[j];
      }
      let sum = 0;
      for (let j = first; j < last; j++) {
        weights[j] = Math.exp(weights[j] - max);
        sum += weights[j];
      }
      for (let j = first; j < last; j++) {
        const weight = weights[j] / sum;
        for (let d = 0; d < D; d++) output[row + d] += weight * v[kv + j * D + d];
      }
    }
  }
}

// x [rows, E] times a kernel [E, E], head after head: [H, rows, D].
function project(x, kernel, { H, L, D, E }) {
  const out = new Float32Array(L * E);
  for (let i = 0; i < L; i++) {
    for (let e = 0; e < E; e++) {
      const factor = x[i * E + e];
      for (let h = 0; h < H; h++) {
        for (let d = 0; d < D; d++) out[(h * L + i) * D + d] += factor * kernel[e * E + h * D + d];
      }
    }
  }
  return out;
}

function merge(attended, kernel, { H, L, D, E }) {
  const out = new Float32Array(L * E);
  for (let h = 0; h < H; h++) {
    for (let i = 0; i < L; i++) {
      for (let d = 0; d < D; d++) {
        const factor = attended[(h * L + i) * D + d];
        for (let e = 0; e < E; e++) out[i * E + e] += factor * kernel[(h * D + d) * E + e];
      }
    }
  }
  return out;
}

export async function create() {
  let shape;
  let inputs;
  let output;
  return {
    about: '',
    prepare(newShape, newInputs) {
      shape = newShape;
      inputs = newInputs;
    },
    run() {
      output = new Float32Array(shape.H * shape.L * shape.D);
      if (shape.kind !== 'layer') return attend(inputs.q, inputs.k, inputs.v, output, shape);
      const [q, k, v] = ['query', 'key', 'value'].map((name) =>
        project(inputs.x, inputs[name], shape),
      );
      attend(q, k, v, output, shape);
      output = merge(output, inputs.output, shape);
    },
    read: () => output,
    release() {
      inputs = output = undefined;
    },
  };
}
