// Tests: the life of what an engine makes: layers, caches, Transformers, decodings: order of calls, disposal, collection of what is
// dropped, and a making that fails.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createEngine } from 'headwise';
import { expectSame } from './compare.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { decoderOnly } from './support/transformer.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

const cacheConfig = { numKvHeads: 4, headDim: 64, capacity: 1600 };

/** What each kind is called, how it is made, and a call of it. */
const kinds = [
  [
    'layer',
    (engine) => engine.multiHeadAttention({ embedDim: 64, numHeads: 4 }),
    (layer) => layer.getWeights(),
  ],
  [
    'cache',
    (engine) => engine.createKVCache(cacheConfig),
    (cache) => cache.append(randomTensor([1, 4, 1, 64], 1), randomTensor([1, 4, 1, 64], 2)),
  ],
  [
    'transformer',
    (engine) => engine.transformer(decoderOnly),
    (model) => model.forward({ target: [[1, 2]] }),
  ],
  [
    'decoding',
    (engine) => engine.transformer(decoderOnly).decoding(),
    (decoding) => decoding.read([[1]]),
  ],
];

describe.each([
  ['on this thread', false],
  ['in a worker', true],
])('an engine %s', (_, offMainThread) => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread });
  });
  afterAll(() => engine.dispose());

  test.each(kinds)('%s: dispose, twice, and what then is said', async (kind, make, call) => {
    const object = make(engine);
    await call(object);
    object.dispose();
    object.dispose();
    const error = await errorOf(() => call(object));
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'DISPOSED' });
    expect(error.message).toContain(kind);
    await expectWorks(engine);
  });

  test.each(kinds)('%s: what is dropped gives its memory back', async (kind, make) => {
    make(engine).dispose();
    await expectWorks(engine);
    let inUseBytes = Infinity;
    // What other tests have dropped goes first.
    for (let rounds = 0; rounds < 5; rounds++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 20));
      inUseBytes = Math.min(inUseBytes, (await engine.memory()).inUseBytes);
    }
    for (let i = 0; i < 20; i++) make(engine);
    expect((await engine.memory()).inUseBytes).toBeGreaterThan(inUseBytes);
    // A registry is told in a task of its own, some time after.
    let now;
    for (let tries = 0; tries < 50 && now !== inUseBytes; tries++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 20));
      now = (await engine.memory()).inUseBytes;
    }
    expect(now).toBe(inUseBytes);
  });

  test('a cache that is forked while a call on it runs: the fork holds what the call has left', async () => {
    const cache = engine.createKVCache(cacheConfig);
    const prompt = [1, 2, 3].map((seed) => randomTensor([1, 4, 1500, 64], seed));
    const running = cache.attend(...prompt);
    const copy = cache.fork();
    const token = [4, 5, 6].map((seed) => randomTensor([1, 4, 1, 64], seed));
    const ofCopy = copy.attend(...token);
    const ofCache = cache.attend(...token);
    await running;
    expectSame((await ofCopy).output, (await ofCache).output);
    expect([cache.lengths, copy.lengths]).toEqual([[1501], [1501]]);
    // The same, of a cache that was filled without any haste.
    const slow = engine.createKVCache(cacheConfig);
    await slow.append(...prompt.slice(1));
    expectSame((await slow.attend(...token)).output, (await ofCache).output);
    for (const one of [cache, copy, slow]) one.dispose();
  });

  test('calls keep their order: what is set is seen by the call behind it', async () => {
    const layer = engine.multiHeadAttention({ embedDim: 8, numHeads: 2, seed: 1 });
    const x = randomTensor([3, 8], 1);
    const busy = engine.attention(...[1, 2, 3].map((seed) => randomTensor([1, 8, 500, 64], seed)));
    const before = layer.forward(x);
    const setting = layer.setWeights({ output: { bias: Array(8).fill(1) } });
    const after = layer.forward(x);
    await Promise.all([busy, setting]);
    const [a, b] = [(await before).output.data, (await after).output.data];
    b.forEach((value, i) => expect(value).toBeCloseTo(a[i] + 1, 4));
    layer.dispose();
  });
});

test('what cannot be made in a worker is told by its first call, and the engine goes on', async () => {
  const engine = await createEngine({
    ...{ backend: 'wasm', threads: 1, offMainThread: true },
    maxMemoryBytes: 2 ** 25,
  });
  const cache = engine.createKVCache({ numKvHeads: 1, headDim: 64, capacity: 2 ** 18 });
  const token = randomTensor([1, 1, 1, 64], 1);
  for (const _ of ['first call', 'second call'])
    expect(await errorOf(() => cache.append(token, token))).toMatchObject({
      code: 'OUT_OF_MEMORY',
    });
  cache.dispose();
  await expectWorks(engine);
  engine.dispose();
});
