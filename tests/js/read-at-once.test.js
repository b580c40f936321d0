// Tests: every asynchronous call has read its arguments when it returns, whether the engine is idle, busy, or in a worker: what is
// written to them afterwards, or where they are transferred, does not matter.

import { createEngine } from 'headwise';
import { expectSame } from './compare.js';
import { randomTensor } from './support/random.js';
import { shaken } from './support/transformer.js';

const config = {
  kind: 'encoder-decoder',
  embedDim: 8,
  numHeads: 2,
  encoderLayers: 1,
  decoderLayers: 1,
  patchDim: 4,
  targetVocabulary: 7,
  maxLength: 16,
};
const patches = () => randomTensor([1, 16, 4], 1);
const sourceMask = () => ({ data: new Uint8Array(16).fill(1), shape: [1, 16] });
const ids = (values) => ({ data: Int32Array.from(values), shape: [1, values.length] });

/** A call with arrays of its own, which it returns with a promise of what it gives. */
const calls = {
  'Transformer.forward': ({ model }) => {
    const batch = { patches: patches(), sourceMask: sourceMask(), target: ids([1, 2, 3]) };
    return [Object.values(batch), model.forward(batch)];
  },
  'Transformer.attentionWeights': ({ model }) => {
    const batch = { patches: patches(), sourceMask: sourceMask(), target: ids([1, 2, 3]) };
    const weights = model.attentionWeights(batch).then(({ cross, encoder }) => {
      const all = [cross, encoder].flat();
      return { data: Float32Array.from(all.flatMap(({ data }) => [...data])) };
    });
    return [Object.values(batch), weights];
  },
  'Transformer.trainStep': ({ fresh }) => {
    const batch = { patches: patches(), target: ids([1, 2, 3]), labels: ids([2, 3, 4]) };
    const model = fresh();
    const loss = model.trainStep(batch).then((step) => ({ data: [step.loss] }));
    return [Object.values(batch), loss];
  },
  'Transformer.setWeights': ({ fresh, names }) => {
    const model = fresh();
    const [name, shape] = names[0];
    const given = randomTensor(shape, 3);
    const set = model.setWeights({ [name]: given }).then(() => model.getWeights());
    return [[given], set.then((weights) => weights[name])];
  },
  'Transformer.decoding': ({ model }) => {
    const source = { patches: patches(), sourceMask: sourceMask() };
    const decoding = model.decoding(source);
    const reading = Promise.resolve().then(() => decoding.read(ids([1, 2])));
    return [Object.values(source), reading];
  },
  'decoding.read': ({ model }) => {
    const target = ids([1, 2, 3]);
    return [[target], model.decoding({ patches: patches() }).read(target)];
  },
  'Transformer.generate': ({ model }) => {
    const source = { patches: patches() };
    const prompt = Int32Array.of(1, 2);
    const tokens = model.generate(source, { prompt, maxTokens: 4 });
    return [[...Object.values(source), { data: prompt }], tokens.then((data) => ({ data }))];
  },
  'layer.forward': ({ layer }) => {
    const x = patches();
    return [[x], layer.forward(x).then(({ output }) => output)];
  },
  'layer.setWeights': ({ engine }) => {
    const layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 1, seed: 2 });
    const bias = { data: Float32Array.of(1, 2, 3, 4), shape: [4] };
    const set = layer.setWeights({ output: { bias } }).then(() => layer.getWeights());
    return [[bias], set.then(({ output }) => output.bias)];
  },
  'cache.attend': ({ engine }) => {
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 20 });
    const given = [1, 2, 3].map((seed) => randomTensor([1, 1, 16, 4], seed));
    return [given, cache.attend(...given).then(({ output }) => output)];
  },
  'engine.attention': ({ engine }) => {
    const given = [1, 2, 3].map((seed) => randomTensor([16, 4], seed));
    return [given, engine.attention(...given).then(({ output }) => output)];
  },
};

const changes = {
  'written to': (array) => array.fill(3),
  transferred: (array) => structuredClone(array.buffer, { transfer: [array.buffer] }),
};

describe.each([
  ['idle', { offMainThread: false }],
  ['busy', { offMainThread: false, busy: true }],
  ['in a worker', { offMainThread: true }],
])('an engine that is %s', (_, { offMainThread, busy = false }) => {
  let held;
  beforeAll(async () => {
    const engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread });
    const model = await shaken(engine, config);
    const weights = await model.getWeights();
    held = {
      engine,
      model,
      layer: engine.multiHeadAttention({ embedDim: 4, numHeads: 1, seed: 1 }),
      fresh: () => engine.transformer({ ...config, seed: 3 }),
      names: Object.entries(weights).map(([name, { shape }]) => [name, shape]),
    };
  });
  afterAll(() => held.engine.dispose());

  const long = () => {
    const x = [1, 2, 3].map((seed) => randomTensor([1, 4, 700, 64], seed));
    return held.engine.attention(...x);
  };

  test.each(Object.keys(calls))('%s', async (name) => {
    const [, untouched] = calls[name](held);
    const wanted = await untouched;
    for (const change of Object.values(changes)) {
      const before = busy ? long() : undefined;
      const [given, result] = calls[name](held);
      for (const { data } of given) change(data);
      expectSame(await result, wanted.data);
      await before;
    }
  });
});
