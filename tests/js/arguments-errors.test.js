// Tests: wrong arguments of objects' methods: each a typed error that names the argument in few words; what callers' own functions
// throw comes through as it is; many sequences and rows are no reason for an error.

import { createEngine, tensor } from 'headwise';
import { attention as onnxAttention } from 'headwise/onnx';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { detach } from './support/traps.js';

let engine;
let mha;
let model;
let decoder;
const sizes = { targetVocabulary: 5, embedDim: 8, numHeads: 2, maxLength: 16 };
const encoder = { kind: 'encoder', patchDim: 4, encoderLayers: 1, ...sizes };
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 1 });
  mha = engine.multiHeadAttention({ embedDim: 8, numHeads: 2 });
  model = engine.transformer(encoder);
  decoder = engine.transformer({ kind: 'decoder', decoderLayers: 1, ...sizes });
});
afterAll(async () => {
  await expectWorks(engine);
  engine.dispose();
});

const batch = () => ({
  patches: randomTensor([1, 8, 4], 1),
  labels: { data: new Int32Array(8).fill(1), shape: [1, 8] },
});
const each = async (iterable) => {
  for await (const _ of iterable);
};
const detached = (array) => {
  detach(array);
  return array;
};
const long = 'x'.repeat(10 ** 6);
const x = () => randomTensor([1, 1, 8, 4], 1);

const wrongObjects = [null, 5, 'text', [1], new Map(), new Float32Array(4), () => 1];
const takers = {
  'layer.setWeights': (value) => mha.setWeights(value),
  'layer.setWeights of a group': (value) => mha.setWeights({ query: value }),
  'layer.loadTorch': (value) => mha.loadTorch(value),
  'layer.loadKeras': (value) => mha.loadKeras(value),
  'transformer.setWeights': (value) => model.setWeights(value),
  'transformer.loadTorch': (value) => model.loadTorch(value),
  'transformer.forward': (value) => model.forward(value),
  'transformer.trainStep': (value) => model.trainStep(value),
  'transformer.trainStep options': (value) => model.trainStep(batch(), value),
  'transformer.load': (value) => model.load(value),
  'transformer.train options': (value) => each(model.train([batch()], value)),
  'transformer.train batch': (value) => each(model.train([value])),
  'transformer.generate options': (value) => decoder.generate({}, value),
  'transformer.decoding': (value) => decoder.decoding(value ?? 5),
  'engine.attention options': (value) => engine.attention(x(), x(), x(), value),
};
const pairs = Object.keys(takers).flatMap((name) => wrongObjects.map((value) => [name, value]));

test.each(pairs)('%s: %p is no object of names', async (name, value) => {
  const before = [await mha.getWeights(), await model.getWeights(), model.step];
  const error = await errorOf(() => takers[name](value));
  expect(['INVALID_TYPE', 'INVALID_SHAPE', 'INVALID_VALUE']).toContain(error.code);
  expect(error.message).toMatch(/^[\w. ]+\W.*(wanted|unknown|no|not|cut off)/u);
  expect([await mha.getWeights(), await model.getWeights(), model.step]).toEqual(before);
});

test.each([null, 5, undefined, {}])('transformer.train: %p gives no batches', async (value) => {
  const error = await errorOf(() => each(model.train(value)));
  expect(error).toMatchObject({
    code: 'INVALID_TYPE',
    message: expect.stringMatching(/^batches: /),
  });
});

const single = [
  [
    'an optimizer that cannot be printed',
    () => model.trainStep(batch(), { optimizer: { toString: 1 } }),
    'INVALID_TYPE',
    /^optimizer: /,
  ],
  [
    'a learning rate that is not finite',
    () => model.trainStep(batch(), { learningRate: () => NaN }),
    'INVALID_VALUE',
    /^learningRate: .*NaN/,
  ],
  [
    'a rotary base that gives no angles',
    () => engine.rotaryEmbedding(randomTensor([8, 4], 1), { base: 5e-324 }),
    'INVALID_VALUE',
    /base/,
  ],
  [
    'a detached checkpoint',
    async () => model.load(detached(await model.save())),
    'INVALID_VALUE',
    /^checkpoint: /,
  ],
  [
    'a detached prompt',
    () => decoder.generate({}, { prompt: detached(new Int32Array(4)) }),
    'INVALID_VALUE',
    /^prompt/,
  ],
  [
    'detached ids',
    () => decoder.forward({ target: { data: detached(new BigInt64Array(4)), shape: [1, 4] } }),
    'INVALID_VALUE',
    /^target/,
  ],
  [
    'detached data of a tensor',
    () => tensor(detached(new Float32Array(4)), [4]),
    'INVALID_VALUE',
    /^data: /,
  ],
  [
    'a detached Float64Array',
    () => tensor(detached(new Float64Array(4))),
    'INVALID_VALUE',
    /^data: /,
  ],
  [
    'tensor(shape, data)',
    () => tensor([2, 3], new Float32Array(500_000)),
    'INVALID_SHAPE',
    /^shape: .*500000/,
  ],
  [
    'a long name of an option',
    () => engine.attention(x(), x(), x(), { [long]: 1 }),
    'INVALID_VALUE',
    /^options: unknown/,
  ],
  [
    'a long value of an option',
    () => engine.attention(x(), x(), x(), { layout: long }),
    'INVALID_VALUE',
    /^layout: /,
  ],
  [
    'a long name of a weight',
    () => model.setWeights({ [long]: x() }),
    'INVALID_VALUE',
    /^x+ … .* no parameter/,
  ],
  [
    'an integer mask of ONNX',
    () =>
      onnxAttention(engine, {
        Q: x(),
        K: x(),
        V: x(),
        attn_mask: { type: 'int64', data: new BigInt64Array(64), dims: [8, 8] },
      }),
    'INVALID_TYPE',
    /^attn_mask: .*bool.*float.*int64/,
  ],
  [
    'an id above 32 bits',
    () => engine.embedding(BigInt64Array.of(2n ** 32n), x()),
    'INVALID_VALUE',
    /^ids\[0\]: .*4294967296n/,
  ],
  [
    'an unsigned id above 63 bits',
    () => engine.embedding(BigUint64Array.of(2n ** 63n), x()),
    'INVALID_VALUE',
    /^ids\[0\]: /,
  ],
];

test.each(single)('%s', async (_, call, code, message) => {
  const { step } = model;
  const error = await errorOf(call);
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(error.message.length).toBeLessThan(2000);
  expect(model.step).toBe(step);
});

test('what callers throw comes through as it is', async () => {
  const own = new Error('own');
  const thrown = () => {
    throw own;
  };
  const trapped = (name) => Object.defineProperty({}, name, { get: thrown, enumerable: true });
  expect(await errorOf(() => model.trainStep(batch(), { learningRate: thrown }))).toBe(own);
  expect(await errorOf(() => engine.attention(x(), x(), x(), trapped('scale')))).toBe(own);
  expect(await errorOf(() => engine.attention(trapped('data'), x(), x()))).toBe(own);
  expect(
    await errorOf(() =>
      each(model.train(Object.defineProperty({}, Symbol.iterator, { get: thrown }))),
    ),
  ).toBe(own);
});

test('a signal that cannot be unlistened to is a signal', async () => {
  const signal = { aborted: false, addEventListener: () => undefined };
  const calls = [0, 1, 2].map(() => engine.attention(x(), x(), x(), { signal }));
  const { output } = engine.attentionSync(x(), x(), x(), { signal });
  for (const call of calls) expect((await call).output).toEqual(output);
});

test('integers of 64 bits are integers', async () => {
  const q = x();
  const same = async (call, a, b) => expect(await call(a)).toEqual(await call(b));
  const kv = (kvLengths) => engine.attention(q, q, q, { kvLengths });
  for (const lengths of [
    BigInt64Array.of(3n),
    BigUint64Array.of(3n),
    [3n],
    { data: [3n], dims: [1] },
  ])
    await same(kv, lengths, [3]);
  const starts = (cuSeqlensQ) =>
    engine.attention(randomTensor([8, 4], 1), randomTensor([8, 4], 2), randomTensor([8, 4], 3), {
      cuSeqlensQ,
      cuSeqlensK: cuSeqlensQ,
    });
  await same(starts, BigInt64Array.of(0n, 3n, 8n), [0, 3, 8]);
  const mask = (keyPaddingMask) => engine.attention(q, q, q, { keyPaddingMask });
  const ones = [1, 1, 0, 1, 1, 1, 1, 0];
  await same(
    mask,
    { data: BigInt64Array.from(ones, BigInt), shape: [1, 8] },
    { data: Uint8Array.from(ones), shape: [1, 8] },
  );
  await same(
    (target) => decoder.forward({ target }),
    { data: BigInt64Array.of(1n, 2n), dims: [1, 2] },
    [[1, 2]],
  );
  await same(
    (prompt) => decoder.generate({}, { prompt, maxTokens: 3 }),
    BigInt64Array.of(1n, 2n),
    [1, 2],
  );
  const step = async (labels) => {
    const fresh = engine.transformer(encoder);
    const progress = await fresh.trainStep({ patches: batch().patches, labels });
    fresh.dispose();
    return progress;
  };
  await same(step, { data: new BigInt64Array(8).fill(1n), shape: [1, 8] }, batch().labels);
});

test('200,000 sequences, rows or parts are no reason for an error', async () => {
  const n = 200_000;
  const ones = (...shape) => ({ data: new Float32Array(n).fill(1), shape });
  const starts = Int32Array.from({ length: n + 1 }, (_, i) => i);
  const all = (data) => data.length === n && data.every((element) => element === 1);
  const packed = await engine.attention(ones(n, 1), ones(n, 1), ones(n, 1), {
    cuSeqlensQ: starts,
    cuSeqlensK: [...starts],
  });
  expect(all(packed.output.data)).toBe(true);
  const rows = await engine.attention(ones(n, 1, 1, 1), ones(n, 1, 1, 1), ones(n, 1, 1, 1), {
    ...{ kvLengths: new Int32Array(n).fill(1), qLengths: new Array(n).fill(1n) },
    ...{ causal: true, causalOffset: new Int32Array(n) },
  });
  expect(all(rows.output.data)).toBe(true);
  const cache = engine.createKVCache({ batch: n, numKvHeads: 1, headDim: 1, capacity: 1 });
  await cache.append(ones(n, 1, 1, 1), ones(n, 1, 1, 1), { lengths: new Int32Array(n).fill(1) });
  const fork = cache.fork({ rows: new Int32Array(n) });
  await fork.trim(new Int32Array(n));
  expect(fork.lengths).toHaveLength(n);
  fork.dispose();
  cache.dispose();
  const part = (logSumExp) => ({ output: tensor([[1]]), logSumExp: tensor([[[logSumExp]]]) });
  const parts = [...new Array(n - 1).fill(part(-Infinity)), part(0)];
  expect((await engine.mergeAttention(parts)).output.toArray()).toEqual([[1]]);
});
