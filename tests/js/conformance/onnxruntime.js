// Conformance: ONNX Runtime's contributed operators MultiHeadAttention, Attention and GroupQueryAttention in terms of
// engine.attention. Packing, biases of the projections and the past are theirs, and are undone here.

import { columns, concatenate, mergeHeads, splitHeads, withBias } from './heads.js';

const heads = (x, numHeads) => (x.shape.length === 4 ? x : splitHeads(x, numHeads));

function refuse(attributes, known) {
  const unknown = Object.keys(attributes).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`attributes that the adapter does not know: ${unknown}`);
}

/** Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value. */
export async function runMultiHeadAttention(engine, { inputs, attributes }) {
  refuse(attributes, ['num_heads', 'scale', 'unidirectional', 'mask_filter_value']);
  const numHeads = attributes.num_heads;
  let [q, k, v] = [inputs[0], inputs[1], inputs[2]];
  if (inputs[3]) {
    // One vector for all three; a key or value of rank 4 has its bias in it already.
    const bias = inputs[3].data;
    const [width, valueWidth] = [q.shape[2], v.shape.length === 3 ? v.shape[2] : q.shape[2]];
    q = withBias(q, bias.slice(0, width));
    if (k.shape.length === 3) k = withBias(k, bias.slice(width, 2 * width));
    if (v.shape.length === 3) v = withBias(v, bias.slice(2 * width, 2 * width + valueWidth));
  }
  [q, k, v] = [heads(q, numHeads), heads(k, numHeads), heads(v, numHeads)];
  k = concatenate(inputs[6], k);
  v = concatenate(inputs[7], v);
  const options = {};
  if (attributes.scale) options.scale = attributes.scale;
  if (attributes.unidirectional) options.causal = true;
  if (inputs[4]) {
    const { data, shape } = inputs[4];
    if (shape.length === 2)
      options.keyPaddingMask = { data: Uint8Array.from(data, (x) => (x ? 1 : 0)), shape };
    else options.kvLengths = data;
  }
  if (inputs[5]) options.bias = inputs[5];
  const { output } = await engine.attention(q, k, v, options);
  return { 0: mergeHeads(output), 1: k, 2: v };
}

/** Inputs: input [B,L,E], weights [E, 3·hidden], bias; q, k and v are made here. */
export async function runAttention(engine, { inputs, attributes }) {
  refuse(attributes, ['num_heads']);
  const projected = await engine.linear(inputs[0], inputs[1], inputs[2]);
  const third = projected.shape.at(-1) / 3;
  const [q, k, v] = [0, 1, 2].map((i) => columns(projected, i * third, (i + 1) * third));
  const { output } = await engine.attention(q, k, v, { numHeads: attributes.num_heads });
  return { 0: output };
}

/** Inputs: query (packed when there is no key), key, value, past_key, past_value, seqlens_k, total_sequence_length. */
export async function runGroupQueryAttention(engine, { inputs, attributes }) {
  refuse(attributes, ['num_heads', 'kv_num_heads', 'scale', 'softcap', 'local_window_size']);
  const { num_heads: numHeads, kv_num_heads: kvHeads } = attributes;
  let [q, k, v] = [inputs[0], inputs[1], inputs[2]];
  if (!k) {
    const dim = q.shape[2] / (numHeads + 2 * kvHeads);
    const cuts = [0, numHeads, numHeads + kvHeads, numHeads + 2 * kvHeads].map((n) => n * dim);
    [q, k, v] = [0, 1, 2].map((i) => columns(inputs[0], cuts[i], cuts[i + 1]));
  }
  q = splitHeads(q, numHeads);
  k = concatenate(inputs[3], splitHeads(k, kvHeads));
  v = concatenate(inputs[4], splitHeads(v, kvHeads));
  const options = { causal: true, kvLengths: inputs[5].data.map((last) => last + 1) };
  if (attributes.scale) options.scale = attributes.scale;
  if (attributes.softcap) options.softcap = attributes.softcap;
  // A width there counts the position itself.
  if (attributes.local_window_size > 0)
    options.window = [attributes.local_window_size - 1, Infinity];
  const { output } = await engine.attention(q, k, v, options);
  return { 0: mergeHeads(output), 1: k, 2: v };
}
