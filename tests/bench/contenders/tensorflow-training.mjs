// Bench: a training step in TensorFlow.js: the model written plainly with its operations, its own gradients and its own Adam.
import * as tf from '@tensorflow/tfjs';

import { learningRate, startValues, trainingBatch } from '../training-inputs.mjs';
import { NotApplicable } from './not-applicable.mjs';
import { startWasm } from './tensorflow-start.mjs';

const hidden = -1e9;

function sinusoidal(length, width) {
  const table = new Float32Array(length * width);
  for (let i = 0; i < length; i++) {
    for (let e = 0; e < width; e++) {
      const angle = i / 10000 ** ((e - (e % 2)) / width);
      table[i * width + e] = e % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
    }
  }
  return tf.tensor(table, [1, length, width]);
}

function causalBias(length) {
  const bias = new Float32Array(length * length);
  for (let i = 0; i < length; i++) bias.fill(hidden, i * length + i + 1, (i + 1) * length);
  return tf.tensor(bias, [1, 1, length, length]);
}

/** The loss as a function without arguments, over variables that it makes; `keep` what is to live as long as they. */
function lossOf(shape, lookUp, keep) {
  const { config, batch: B, sourceLength: S, targetLength: L } = shape;
  const { embedDim: E, numHeads: H, targetVocabulary } = config;
  const D = E / H;
  const made = new Map();
  const parameter = (name, ...size) => {
    if (!made.has(name)) made.set(name, tf.variable(tf.tensor(startValues(name, size), size)));
    return made.get(name);
  };
  // q, k and v as parts of one packed matrix, which is cut once.
  const packed = (name, rows, columns, part) => {
    const key = `${name} ${part}`;
    if (!made.has(key)) {
      const values = startValues(name, columns === 0 ? [rows * 3] : [rows * 3, columns]);
      const size = rows * Math.max(columns, 1);
      const own = values.slice(part * size, (part + 1) * size);
      made.set(key, tf.variable(tf.tensor(own, columns === 0 ? [rows] : [rows, columns])));
    }
    return made.get(key);
  };
  const linear = (x, weight, bias) => tf.add(tf.matMul(x, weight, false, true), bias);
  const layer = (x, name, out, width) =>
    linear(x, parameter(`${name}.weight`, out, width), parameter(`${name}.bias`, out));
  const norm = (x, name) => {
    const { mean, variance } = tf.moments(x, -1, true);
    const scaled = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
    return tf.add(tf.mul(scaled, parameter(`${name}.weight`, E)), parameter(`${name}.bias`, E));
  };
  const attend = (x, memory, name, rows, keys, bias) => {
    const project = (from, part, length) => {
      const y = linear(
        from,
        packed(`${name}.in_proj_weight`, E, E, part),
        packed(`${name}.in_proj_bias`, E, 0, part),
      );
      return tf.transpose(tf.reshape(y, [B, length, H, D]), [0, 2, 1, 3]);
    };
    const scores = tf.matMul(
      tf.mul(project(x, 0, rows), 1 / Math.sqrt(D)),
      project(memory, 1, keys),
      false,
      true,
    );
    const weights = tf.softmax(bias ? tf.add(scores, bias) : scores);
    const heads = tf.matMul(weights, project(memory, 2, keys));
    const merged = tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), [B * rows, E]);
    return layer(merged, `${name}.out_proj`, E, E);
  };
  const feedForward = (x, name) => {
    const inner = layer(x, `${name}.linear1`, config.feedForwardDim, E);
    return layer(tf.relu(inner), `${name}.linear2`, E, config.feedForwardDim);
  };
  const embedded = (side, tokens, vocabulary, length) => {
    const table = parameter(`${side}_embedding.weight`, vocabulary, E);
    const rows = tf.mul(lookUp(table, tokens, vocabulary), Math.sqrt(E));
    return tf.reshape(tf.add(tf.reshape(rows, [B, length, E]), positions(length)), [B * length, E]);
  };
  const tables = new Map();
  const positions = (length) => tables.get(length);
  for (const length of new Set([S, L])) tables.set(length, keep(sinusoidal(length, E)));

  const given = trainingBatch(shape);
  const tokensOf = (name) => given[name] && keep(tf.tensor1d(given[name].data, 'int32'));
  const [source, target] = [tokensOf('source'), tokensOf('target')];
  const wanted = keep(
    tf.tidy(() => tf.oneHot(tf.tensor1d(given.labels.data, 'int32'), targetVocabulary).toFloat()),
  );
  const ahead = keep(causalBias(L));

  return () => {
    let memory;
    for (let n = 0; n < (config.encoderLayers ?? 0); n++) {
      const name = `encoder.layers.${n}`;
      memory ??= embedded('source', source, config.sourceVocabulary, S);
      memory = norm(
        tf.add(memory, attend(memory, memory, `${name}.self_attn`, S, S)),
        `${name}.norm1`,
      );
      memory = norm(tf.add(memory, feedForward(memory, name)), `${name}.norm2`);
    }
    let x = embedded('target', target, targetVocabulary, L);
    for (let n = 0; n < config.decoderLayers; n++) {
      const name = `decoder.layers.${n}`;
      let norms = 0;
      const after = (branch) => norm(tf.add(x, branch), `${name}.norm${++norms}`);
      x = after(attend(x, x, `${name}.self_attn`, L, L, ahead));
      if (memory) x = after(attend(x, memory, `${name}.multihead_attn`, L, S));
      x = after(feedForward(x, name));
    }
    const logits = layer(x, 'generator', targetVocabulary, E);
    return tf.losses.softmaxCrossEntropy(wanted, logits);
  };
}

// The wasm backend has no gradient of gather; there a row is looked up by a product.
const lookUps = {
  cpu: (table, tokens) => tf.gather(table, tokens),
  wasm: (table, tokens, vocabulary) => tf.matMul(tf.oneHot(tokens, vocabulary).toFloat(), table),
};

export async function create({ backend, threads, wasmPaths }) {
  let about = tf.version_core;
  if (backend === 'wasm') about = await startWasm(threads, wasmPaths);
  else if (!(await tf.setBackend(backend))) throw new NotApplicable(`no backend ${backend}`);
  let step;
  let losses;
  let peakBytes;
  let optimizer;
  let kept = [];
  const keep = (tensor) => {
    kept.push(tensor);
    return tensor;
  };
  return {
    about,
    async prepare(shape) {
      const loss = lossOf(shape, lookUps[backend], keep);
      optimizer = tf.train.adam(learningRate, 0.9, 0.999, 1e-8);
      losses = [];
      step = () => {
        const value = optimizer.minimize(loss, true);
        if (losses.length < 2) losses.push(value.dataSync()[0]);
        else value.dataSync();
        value.dispose();
      };
      tf.tidy(loss).dispose(); // makes the variables: minimize() knows only those that are there before
      ({ peakBytes } = await tf.profile(() => step()));
    },
    run: () => step(),
    read: () => Float32Array.from(losses),
    memory: () => ({ peakBytes }),
    release() {
      for (const tensor of kept) tensor.dispose();
      kept = [];
      optimizer?.dispose();
      tf.disposeVariables();
      step = losses = optimizer = undefined;
    },
  };
}
