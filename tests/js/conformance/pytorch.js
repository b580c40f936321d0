// Conformance: torch.nn.TransformerEncoder and TransformerDecoder as engine.transformer between identities: what goes in comes
// from a projection or a table of embeddings, and the logits are what the stack puts out. Their tensors are [L,N,E], their
// masks true = hidden.

const shaped = (data, shape) => ({ data: Float32Array.from(data), shape });

function identity(rows, columns) {
  const data = new Float32Array(rows * columns);
  for (let i = 0; i < Math.min(rows, columns); i++) data[i * columns + i] = 1;
  return { data, shape: [rows, columns] };
}

// [L,N,E] to [N,L,E], and back.
const exchanged = (list) => list[0].map((_, n) => list.map((row) => row[n]));
const inverted = (mask) => mask.map((row) => row.map((hidden) => !hidden));

// "every parameter p: p.flat[i] = cos(i)" but for the final norm, which is PyTorch's default.
async function load(model, stack, { d_model: width, final_layernorm: finalNorm }) {
  const state = {};
  for (const [name, { shape, data }] of Object.entries(await model.getWeights())) {
    if (!name.startsWith(`${stack}.layers.`)) continue;
    state[name.slice(stack.length + 1)] = shaped(
      data.map((_, i) => Math.cos(i)),
      shape,
    );
  }
  if (finalNorm) {
    state['norm.weight'] = shaped(new Array(width).fill(1), [width]);
    state['norm.bias'] = shaped(new Array(width).fill(0), [width]);
  }
  await model.loadTorch(state, stack);
}

const configOf = (c) => ({
  embedDim: c.d_model,
  numHeads: c.nhead,
  feedForwardDim: c.dim_feedforward,
  activation: c.activation,
  normFirst: c.norm_first,
  finalNorm: c.final_layernorm,
  epsilon: c.layer_norm_eps,
  patchDim: c.d_model,
  positions: 'none',
  trainable: false,
});

// By PyTorch's names; one that is not here is an error.
const masks = {
  src_mask: (mask) => ({ sourceAttention: { mask: inverted(mask) } }),
  tgt_mask: (mask) => ({ targetAttention: { mask: inverted(mask) } }),
  memory_mask: (mask) => ({ memoryAttention: { mask: inverted(mask) } }),
  src_key_padding_mask: (mask) => ({ sourceMask: inverted(mask) }),
  tgt_key_padding_mask: (mask) => ({ targetMask: inverted(mask) }),
  memory_key_padding_mask: (mask) => ({ memoryMask: inverted(mask) }),
};

function inputOf(c, input) {
  for (const [name, mask] of Object.entries(c.masks)) Object.assign(input, masks[name](mask));
  return input;
}

const vectors = (list, width) =>
  shaped(exchanged(list).flat(2), [list[0].length, list.length, width]);

async function encode(engine, c) {
  const { d_model: width } = c;
  const model = engine.transformer({
    ...configOf(c),
    kind: 'encoder',
    encoderLayers: c.num_layers,
    targetVocabulary: width,
  });
  await model.setWeights({
    'source_projection.weight': identity(width, width),
    'generator.weight': identity(width, width),
  });
  await load(model, 'encoder', c);
  return { model, logits: await model.forward(inputOf(c, { patches: vectors(c.input, width) })) };
}

// Each of the target's vectors is a token of its own.
async function decode(engine, c) {
  const { d_model: width } = c;
  const rows = exchanged(c.input);
  const tokens = rows.length * rows[0].length;
  const vocabulary = Math.max(tokens, width);
  const model = engine.transformer({
    ...configOf(c),
    kind: 'encoder-decoder',
    encoderLayers: 0,
    decoderLayers: c.num_layers,
    targetVocabulary: vocabulary,
    scaleEmbedding: false,
  });
  const table = new Float32Array(vocabulary * width);
  table.set(rows.flat(2));
  await model.setWeights({
    'source_projection.weight': identity(width, width),
    'target_embedding.weight': shaped(table, [vocabulary, width]),
    'generator.weight': identity(vocabulary, width),
  });
  await load(model, 'decoder', c);
  const input = {
    patches: vectors(c.memory, width),
    target: rows.map((row, n) => row.map((_, i) => n * row.length + i)),
    causal: false,
  };
  return { model, logits: await model.forward(inputOf(c, input)) };
}

/** Runs a case; its only output, [L,N,E]. */
export async function runStack(engine, c) {
  const { model, logits } = await (c.kind === 'encoder' ? encode : decode)(engine, c);
  model.dispose();
  const [batch, length, width] = logits.shape;
  const out = [];
  for (let i = 0; i < length; i++) {
    for (let n = 0; n < batch; n++) {
      const from = (n * length + i) * width;
      out.push(...logits.data.subarray(from, from + c.d_model));
    }
  }
  return { 0: { type: 'float32', shape: [length, batch, c.d_model], data: out } };
}
