// Conformance: other projects' cases as calls, of headwise/onnx by domain and operator, of engine.transformer by kind. Inputs and outputs have names there
// and slots in the cases; everything else passes straight through.

import * as onnx from 'headwise/onnx';
import { runStack } from './pytorch.js';

const call = (run) => run; // an operator on an engine: (engine, inputs, attributes, options)
const pure = (run) => (_, inputs, attributes) => run(inputs, attributes); // one without

const attention = {
  run: call(onnx.attention),
  inputs: ['Q', 'K', 'V', 'attn_mask', 'past_key', 'past_value', 'nonpad_kv_seqlen'],
  outputs: ['Y', 'present_key', 'present_value', 'qk_matmul_output'],
};

const aiOnnx = {
  Attention: attention,
  RotaryEmbedding: {
    run: pure(onnx.rotaryEmbedding),
    inputs: ['X', 'cos_cache', 'sin_cache', 'position_ids'],
    outputs: ['Y'],
  },
  LayerNormalization: {
    run: pure(onnx.layerNormalization),
    inputs: ['X', 'Scale', 'B'],
    outputs: ['Y', 'Mean', 'InvStdDev'],
  },
  RMSNormalization: { run: pure(onnx.rmsNormalization), inputs: ['X', 'scale'], outputs: ['Y'] },
  Softmax: { run: pure(onnx.softmax), inputs: ['input'], outputs: ['output'] },
  Gelu: { run: pure(onnx.gelu), inputs: ['X'], outputs: ['Y'] },
};

const microsoft = {
  MultiHeadAttention: {
    run: call(onnx.multiHeadAttention),
    inputs: [
      ...['query', 'key', 'value', 'bias', 'key_padding_mask', 'attention_bias'],
      ...['past_key', 'past_value'],
    ],
    outputs: ['output', 'present_key', 'present_value'],
  },
  GroupQueryAttention: {
    run: call(onnx.groupQueryAttention),
    inputs: [
      ...['query', 'key', 'value', 'past_key', 'past_value', 'seqlens_k', 'total_sequence_length'],
      ...['cos_cache', 'sin_cache', 'position_ids', 'attention_bias', 'head_sink'],
    ],
    outputs: ['output', 'present_key', 'present_value', 'output_qk'],
  },
  Attention: {
    run: call(onnx.microsoftAttention),
    inputs: ['input', 'weights', 'bias', 'mask_index', 'past', 'attention_bias'],
    outputs: ['output', 'present'],
  },
  RotaryEmbedding: {
    run: pure(onnx.microsoftRotaryEmbedding),
    inputs: ['input', 'position_ids', 'cos_cache', 'sin_cache'],
    outputs: ['output'],
  },
};

const pytorch = {
  'Transformer encoder': { runWhole: runStack },
  'Transformer decoder': { runWhole: runStack },
};

/** The operator of a case, or undefined. */
export const operatorOf = ({ domain, group, op }) => {
  if (group === 'pytorch') return pytorch[op];
  return (domain === 'com.microsoft' ? microsoft : aiOnnx)[op];
};

/** Runs a case; resolves to tensors by output slot. */
export async function runCase(engine, conformance) {
  const { run, inputs, outputs, runWhole } = operatorOf(conformance);
  if (runWhole) return runWhole(engine, conformance);
  const named = Object.fromEntries(
    Object.entries(conformance.inputs).map(([slot, tensor]) => [inputs[slot], tensor]),
  );
  const wanted = Object.keys(conformance.outputs).map((slot) => outputs[slot]);
  const results = await run(engine, named, conformance.attributes, { outputs: wanted });
  return Object.fromEntries(outputs.map((name, slot) => [slot, results[name]]));
}
