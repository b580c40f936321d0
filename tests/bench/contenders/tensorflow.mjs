// Bench: TensorFlow.js on its wasm backend: matMul, softmax, matMul; it has no attention of its own.
import * as tf from '@tensorflow/tfjs';
import {
  getThreadsCount,
  setThreadsCount,
  setWasmPaths,
  version_wasm,
} from '@tensorflow/tfjs-backend-wasm';

import { NotApplicable } from './not-applicable.mjs';

export async function create({ threads, wasmPaths }) {
  setWasmPaths(wasmPaths);
  setThreadsCount(threads);
  await tf.setBackend('wasm');
  await tf.ready();
  if (threads > 1 && !(await tf.env().getAsync('WASM_HAS_MULTITHREAD_SUPPORT'))) {
    throw new NotApplicable('TensorFlow.js has no threads here');
  }
  // It takes the number for a wish: with two cores it starts one thread.
  if (threads > 1 && getThreadsCount() !== threads) {
    throw new NotApplicable(
      `asked for ${threads} threads, TensorFlow.js starts ${getThreadsCount()}`,
    );
  }
  let compute;
  let kept = [];
  let last;

  const attend = (q, k, v, scale, bias) => {
    const scores = tf.matMul(tf.mul(q, scale), k, false, true);
    return tf.matMul(tf.softmax(bias ? tf.add(scores, bias) : scores), v);
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
    about: version_wasm,
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
