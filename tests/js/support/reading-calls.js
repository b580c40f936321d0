// Tests: calls of every kind whose arguments are arrays, as data: what they are called with, how, and what numbers come out.
// Sizes are small; with `size` 2 arrays are below the 16 elements that are copied at once on reading, with 8 they are above.

import { attention as onnxAttention } from 'headwise/onnx';
import { randomTensor } from './random.js';

const flat = (tensors) =>
  Object.values(tensors).flatMap((node) =>
    ArrayBuffer.isView(node.data) ? [...node.data] : flat(node),
  );
const numbers = (result) =>
  Object.values(result.data === undefined ? result : { result }).flatMap(({ data }) => [...data]);

const qkv = (size, seed) => [0, 1, 2].map((i) => randomTensor([1, 2, size, 4], seed + i));
const bytes = (shape) => ({
  data: new Uint8Array(shape.reduce((a, b) => a * b, 1)).fill(1),
  shape,
});

const layer = { embedDim: 8, numHeads: 2, seed: 3 };
const encoder = {
  ...{ kind: 'encoder', patchDim: 4, targetVocabulary: 5, embedDim: 8, numHeads: 2 },
  ...{ encoderLayers: 1, maxLength: 16, seed: 3 },
};

async function withObject(object, use) {
  try {
    return await use(object);
  } finally {
    object.dispose();
  }
}

// What a layer or Transformer holds after `set`, which either did all that was asked or, throwing, nothing.
async function weightsAfter(object, set) {
  const before = flat(await object.getWeights());
  try {
    await set(object);
  } catch (error) {
    expect(flat(await object.getWeights())).toEqual(before);
    throw error;
  }
  return flat(await object.getWeights());
}

const kernels = (seed) =>
  ['query', 'key', 'value', 'output'].flatMap((_, i) => [
    randomTensor(i === 3 ? [2, 4, 8] : [8, 2, 4], seed + i),
    randomTensor(i === 3 ? [8] : [2, 4], seed + 4 + i),
  ]);

/** name → { make(size, seed): the arguments, run(engine, args): the numbers, isSync } */
export const readingCalls = {
  attention: {
    make: (size, seed) => [
      ...qkv(size, seed),
      {
        ...{ bias: randomTensor([2, size, size], seed + 3), mask: bytes([size, size]), scale: 1 },
        ...{ keyPaddingMask: bytes([1, size]), sinks: Float32Array.of(1, 2), kvLengths: [size] },
        ...{ dropout: { rate: 0.5, seed }, returnWeights: true, signal: undefined },
      },
    ],
    run: async (engine, args) => numbers(await engine.attention(...args)),
  },
  attentionSync: {
    isSync: true,
    make: (size, seed) => [...qkv(size, seed), { causal: true, window: [size, 0] }],
    run: (engine, args) => numbers(engine.attentionSync(...args)),
  },
  attentionBackward: {
    make: (size, seed) => [
      randomTensor([1, 2, size, 4], seed + 5),
      ...qkv(size, seed),
      randomTensor([1, 2, size, 4], seed + 6),
      { data: new Float32Array(2 * size).fill(2), shape: [1, 2, size] },
      { bias: randomTensor([size, size], seed + 3), scale: 1 },
    ],
    run: async (engine, args) => numbers(await engine.attentionBackward(...args)),
  },
  mergeAttention: {
    make: (size, seed) => [
      [0, 1].map((i) => ({
        output: randomTensor([1, 2, size, 4], seed + i),
        logSumExp: randomTensor([1, 2, size], seed + 2 + i),
      })),
    ],
    run: async (engine, args) => numbers(await engine.mergeAttention(...args)),
  },
  linear: {
    make: (size, seed) => [
      randomTensor([size, 4], seed),
      randomTensor([4, size], seed + 1),
      randomTensor([size], seed + 2),
    ],
    run: async (engine, args) => numbers(await engine.linear(...args)),
  },
  embedding: {
    make: (size, seed) => [
      { data: BigInt64Array.from({ length: size }, (_, i) => BigInt(i)), shape: [size] },
      randomTensor([size, 4], seed),
    ],
    run: async (engine, args) => numbers(await engine.embedding(...args)),
  },
  rotaryEmbedding: {
    make: (size, seed) => [
      randomTensor([size, 8], seed),
      { cos: randomTensor([size, 4], seed + 1), sin: randomTensor([size, 4], seed + 2) },
    ],
    run: async (engine, args) => numbers(await engine.rotaryEmbedding(...args)),
  },
  'layer.forward': {
    make: (size, seed) => [
      ...[0, 1, 2].map((i) => randomTensor([size, 8], seed + i)),
      { mask: bytes([size, size]), averageWeights: true },
    ],
    run: (engine, args) =>
      withObject(engine.multiHeadAttention(layer), async (mha) =>
        numbers(await mha.forward(...args)),
      ),
  },
  'layer.setWeights': {
    make: (size, seed) => {
      const [query, , key, , , value, output] = kernels(seed);
      return [
        {
          query: { kernel: query },
          key: { kernel: key },
          value: { bias: value },
          output: { kernel: output },
        },
      ];
    },
    run: (engine, args) =>
      withObject(engine.multiHeadAttention(layer), (mha) =>
        weightsAfter(mha, () => mha.setWeights(...args)),
      ),
  },
  'layer.loadKeras': {
    make: (size, seed) => [kernels(seed)],
    run: (engine, args) =>
      withObject(engine.multiHeadAttention(layer), (mha) =>
        weightsAfter(mha, () => mha.loadKeras(...args)),
      ),
  },
  'layer.loadTorch': {
    make: (size, seed) => [
      {
        in_proj_weight: randomTensor([24, 8], seed),
        in_proj_bias: randomTensor([24], seed + 1),
        'out_proj.weight': randomTensor([8, 8], seed + 2),
        'out_proj.bias': randomTensor([8], seed + 3),
      },
    ],
    run: (engine, args) =>
      withObject(engine.multiHeadAttention(layer), (mha) =>
        weightsAfter(mha, () => mha.loadTorch(...args)),
      ),
  },
  'cache.attend': {
    make: (size, seed) => [...qkv(size, seed), { bias: randomTensor([size, size], seed + 3) }],
    run: (engine, args) =>
      withObject(
        engine.createKVCache({ numKvHeads: 2, headDim: 4, capacity: 16 }),
        async (cache) => {
          try {
            return numbers(await cache.attend(...args));
          } catch (error) {
            expect(cache.lengths).toEqual([0]);
            throw error;
          }
        },
      ),
  },
  'transformer.forward': {
    make: (size, seed) => [
      { patches: randomTensor([2, size, 4], seed), sourceMask: bytes([2, size]) },
      { signal: undefined },
    ],
    run: (engine, args) =>
      withObject(engine.transformer(encoder), async (model) =>
        numbers(await model.forward(...args)),
      ),
  },
  'transformer.trainStep': {
    make: (size, seed) => [
      {
        patches: randomTensor([2, size, 4], seed),
        sourceMask: bytes([2, size]),
        labels: { data: new Int32Array(2 * size).fill(1), shape: [2, size] },
      },
      { accumulate: 2, learningRate: 0.1, betas: [0.9, 0.99] },
    ],
    run: (engine, args) =>
      withObject(engine.transformer(encoder), (model) =>
        weightsAfter(model, () => model.trainStep(...args)),
      ),
  },
  'transformer.setWeights': {
    make: (size, seed) => [
      {
        'source_projection.weight': randomTensor([8, 4], seed),
        'encoder.layers.0.linear1.bias': randomTensor([32], seed + 1),
      },
    ],
    run: (engine, args) =>
      withObject(engine.transformer(encoder), (model) =>
        weightsAfter(model, () => model.setWeights(...args)),
      ),
  },
  'onnx.attention': {
    make: (size, seed) => {
      const [Q, K, V] = qkv(size, seed).map(({ data, shape }) => ({
        data,
        dims: shape,
        type: 'float32',
      }));
      return [{ Q, K, V, attn_mask: bytes([size, size]) }, { is_causal: 1 }];
    },
    run: async (engine, args) => numbers(await onnxAttention(engine, ...args)).map(Number),
  },
};
