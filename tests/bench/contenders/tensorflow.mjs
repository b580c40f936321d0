// Bench: TensorFlow.js on its wasm backend: matMul, softmax, matMul; it has no attention of its own.
import * as tf from '@tensorflow/tfjs';

import { NotApplicable } from './not-applicable.mjs';
import { startWasm } from './tensorflow-start.mjs';

export async function create({ threads, wasmPaths }) {
  const version = await startWasm(threads, wasmPaths);
  let compute;
  let kept = [];
  let last;

  const attend = (q, k, v, scale, bias) => {
    const scores = tf.matMul(tf.mul(q, scale), k, false, true);
    return tf.matMul(tf.softmax(bias ? tf.add(scores, bias) : scores), v);
  };
  // By hand from the kept weights [H,L,S], as its own gradients would hold them.
  const backward = ({ H, L, S, D }, inputs, scale) => {
    const [q, dOutput] = [inputs.q, inputs.dOutput].map((data) => tf.tensor(data, [H, L, D]));
    const [k, v] = [inputs.k, inputs.v].map((data) => tf.tensor(data, [H, S, D]));
    const weights = tf.tidy(() => tf.softmax(tf.mul(tf.matMul(q, k, false, true), scale)));
    const output = tf.matMul(weights, v);
    kept.push(q, k, v, dOutput, weights, output);
    return () => {
      const dv = tf.matMul(weights, dOutput, true);
      const dWeights = tf.matMul(dOutput, v, false, true);
      const delta = tf.sum(tf.mul(dOutput, output), -1, true);
      const dScores = tf.mul(tf.mul(weights, tf.sub(dWeights, delta)), scale);
      const [dq, dk] = [tf.matMul(dScores, k), tf.matMul(dScores, q, true)];
      return tf.concat([dq, dk, dv].map((gradient) => tf.reshape(gradient, [-1])));
    };
  };
  const hidden = ({ L, S, causal, window = Infinity }) => {
    if (!causal) return undefined;
    const bias = new Float32Array(L * S);
    for (let i = 0; i < L; i++) {
      const last_ = i + S - L;
      for (let j = 0; j < S; j++) if (j > last_ || j <= last_ - window) bias[i * S + j] = -1e9;
    }
    return tf.tensor(bias, [1, L, S]);
  };

  return {
    about: version,
    prepare(shape, inputs) {
      const { kind, H, G, L, S, D, E } = shape;
      if (G !== H) throw new NotApplicable('TensorFlow.js has no grouped heads');
      const scale = 1 / Math.sqrt(D);
      const bias = hidden(shape);
      kept = [bias];
      if (kind === 'layer') {
        const x = () => tf.tensor(inputs.x, [L, E]);
        const [query, key, value, output] = ['query', 'key', 'value', 'output'].map((n) =>
          tf.tensor(inputs[n], [E, E]),
        );
        kept.push(query, key, value, output);
        const heads = (y) => tf.transpose(tf.reshape(y, [L, H, D]), [1, 0, 2]);
        compute = () => {
          const rows = x();
          const [q, k, v] = [query, key, value].map((kernel) => heads(tf.matMul(rows, kernel)));
          const merged = tf.reshape(tf.transpose(attend(q, k, v, scale), [1, 0, 2]), [L, E]);
          return tf.matMul(merged, output);
        };
      } else if (kind === 'backward') {
        compute = backward(shape, inputs, scale);
      } else {
        compute = () =>
          attend(
            tf.tensor(inputs.q, [H, L, D]),
            tf.tensor(inputs.k, [H, S, D]),
            tf.tensor(inputs.v, [H, S, D]),
            scale,
            bias,
          );
      }
    },
    run() {
      const result = tf.tidy(compute);
      last = result.dataSync();
      result.dispose();
    },
    read: () => last,
    release() {
      for (const tensor of kept) tensor?.dispose();
      kept = [];
      compute = last = undefined;
    },
  };
}
