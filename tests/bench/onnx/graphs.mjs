// Bench: each shape as an ONNX graph around one of the two attention operators, with the arrays to feed it, in the layout
// that spares the operator work, and how to read its output.
import { NotApplicable } from '../contenders/not-applicable.mjs';
import { exchangeAxes } from '../inputs.mjs';
import { int } from './model.mjs';

/** 1 where query i may see key j: [L,S]. */
function windowMask({ L, S, window }) {
  const mask = new Uint8Array(L * S);
  for (let i = 0; i < L; i++) {
    const last = i + S - L;
    mask.fill(1, i * S + Math.max(0, last - window + 1), i * S + last + 1);
  }
  return mask;
}

// ai.onnx.Attention, opset 23: everything [B,H,L,D], groups and causality inside.
function attention(shape, { q, k, v }) {
  const { H, G, L, S, D, causal, window } = shape;
  const inputs = {
    q: { dims: [1, H, L, D] },
    k: { dims: [1, G, S, D] },
    v: { dims: [1, G, S, D] },
  };
  const feeds = { q, k, v };
  if (window) {
    inputs.mask = { dims: [L, S], type: 'bool' };
    feeds.mask = windowMask(shape);
  }
  const attributes = causal && !window ? { is_causal: int(1) } : {};
  const node = { op: 'Attention', inputs: Object.keys(inputs), outputs: ['output'], attributes };
  return {
    graph: { nodes: [node], inputs, outputs: { output: { dims: [1, H, L, D] } } },
    feeds,
    read: (data) => data,
  };
}

// com.microsoft.MultiHeadAttention: the query [B,L,H·D], keys and values [B,H,S,D].
function multiHeadAttention(shape, { q, k, v }) {
  const { H, G, L, S, D, causal, window } = shape;
  if (G !== H) throw new NotApplicable('MultiHeadAttention has no grouped heads');
  const inputs = {
    q: { dims: [1, L, H * D] },
    k: { dims: [1, H, S, D] },
    v: { dims: [1, H, S, D] },
  };
  const feeds = { q: exchangeAxes(q, H, L, D), k, v };
  const names = ['q', 'k', 'v'];
  if (window) {
    inputs.bias = { dims: [1, 1, L, S] };
    feeds.bias = Float32Array.from(windowMask(shape), (seen) => (seen ? 0 : -1e30));
    names.push('', '', 'bias');
  }
  const attributes = {
    num_heads: int(H),
    ...(causal && !window ? { unidirectional: int(1) } : {}),
  };
  const node = {
    op: 'MultiHeadAttention',
    domain: 'com.microsoft',
    inputs: names,
    outputs: ['output'],
    attributes,
  };
  return {
    graph: { nodes: [node], inputs, outputs: { output: { dims: [1, L, H * D] } } },
    feeds,
    read: (data) => exchangeAxes(data, L, H, D),
  };
}

// Projections as MatMul with constant kernels, which onnxruntime packs once.
function layer({ H, L, E }, inputs, operator) {
  const constants = {};
  for (const name of ['query', 'key', 'value', 'output'])
    constants[`W_${name}`] = { data: inputs[name], dims: [E, E] };
  const project = (from, name, to) => ({
    op: 'MatMul',
    inputs: [from, `W_${name}`],
    outputs: [to],
  });
  const heads =
    operator === 'Attention'
      ? { q_num_heads: int(H), kv_num_heads: int(H) }
      : { num_heads: int(H) };
  const nodes = [
    project('x', 'query', 'q'),
    project('x', 'key', 'k'),
    project('x', 'value', 'v'),
    {
      op: operator,
      domain: operator === 'Attention' ? '' : 'com.microsoft',
      inputs: ['q', 'k', 'v'],
      outputs: ['attended'],
      attributes: heads,
    },
    project('attended', 'output', 'y'),
  ];
  return {
    graph: {
      nodes,
      inputs: { x: { dims: [1, L, E] } },
      outputs: { y: { dims: [1, L, E] } },
      constants,
    },
    feeds: { x: inputs.x },
    read: (data) => data,
  };
}

/** @param {'MultiHeadAttention' | 'Attention'} operator */
export function graphOf(shape, inputs, operator) {
  if (shape.kind === 'layer') return layer(shape, inputs, operator);
  return operator === 'Attention' ? attention(shape, inputs) : multiHeadAttention(shape, inputs);
}
