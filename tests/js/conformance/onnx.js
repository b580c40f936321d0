// Conformance: ONNX's Attention (opsets 23, 24, 25) in terms of engine.attention. Where ONNX differs from this package
// (default offset 0, masks shorter than the keys, the meaning of -1 in a window), the difference is made up for here.

import { concatenate, mergeHeads, padded, splitHeads } from './heads.js';

const [Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD] = [0, 1, 2, 3, 4, 5, 6];
const [OUTPUT, PRESENT_KEY, PRESENT_VALUE, SCORES] = [0, 1, 2, 3];
const stages = ['raw', 'softcapped', 'masked'];
const open = (width) => (width === undefined || width === -1 ? Infinity : width);

/** Runs the case; returns tensors by output slot. */
export async function runOnnxAttention(engine, { inputs, outputs, attributes }) {
  const rank3 = inputs[Q].shape.length === 3;
  const past = inputs[PAST_KEY];
  let [q, k, v] = [inputs[Q], inputs[K], inputs[V]];
  const options = {};
  if (rank3 && !past) {
    // The engine takes rank 3 as it is; a past is [B,H,S,D] always, so with one the heads are split first.
    Object.assign(options, {
      numHeads: attributes.q_num_heads,
      numKvHeads: attributes.kv_num_heads,
    });
  } else if (rank3) {
    q = splitHeads(q, attributes.q_num_heads);
    [k, v] = [splitHeads(k, attributes.kv_num_heads), splitHeads(v, attributes.kv_num_heads)];
  }
  k = concatenate(past, k);
  v = concatenate(inputs[PAST_VALUE], v);

  if (attributes.scale !== undefined) options.scale = attributes.scale;
  if (attributes.softcap) options.softcap = attributes.softcap;
  const keys = rank3 && !past ? k.shape[1] : k.shape[2];
  const mask = inputs[MASK];
  if (mask?.dtype === 'bool') options.mask = padded(mask, keys, 0);
  else if (mask) options.bias = padded(mask, keys, -Infinity);

  const window = [open(attributes.left_window_size), open(attributes.right_window_size)];
  if (window.some(Number.isFinite)) options.window = window;
  if (attributes.is_causal) options.causal = true;
  if (inputs[NONPAD]) {
    // The default offset, kvLength - queries, is ONNX's with this input.
    options.kvLengths = inputs[NONPAD].data;
  } else if (options.causal || options.window) {
    options.causalOffset = past ? past.shape[2] : 0;
  }

  const mode = attributes.qk_matmul_output_mode ?? 0;
  if (outputs[SCORES])
    Object.assign(options, mode === 3 ? { returnWeights: true } : { returnScores: stages[mode] });

  const result = await engine.attention(q, k, v, options);
  return {
    [OUTPUT]: rank3 && past ? mergeHeads(result.output) : result.output,
    [PRESENT_KEY]: k,
    [PRESENT_VALUE]: v,
    [SCORES]: mode === 3 ? result.weights : result.scores,
  };
}
