// Tests: the GPU's queue: a call that waits for its turn rejects at once when its signal aborts, a step of a cache has appended
// nothing then, and what is behind it goes on.

import { createEngine } from '../../dist/index.js';
import { expectSame } from '../js/compare.js';
import { randomTensor } from '../js/support/random.js';

const errorOf = (promise) => promise.then(() => undefined).catch((error) => error);

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'webgpu', threads: 1 });
});
afterAll(() => engine.dispose());

const long = [1, 2, 3].map((seed) => randomTensor([1, 4, 400, 32], seed));
const small = [4, 5, 6].map((seed) => randomTensor([1, 1, 1, 8], seed));

test('attention', async () => {
  const alone = (await engine.attention(...small)).output;
  const order = [];
  const first = engine.attention(...long).then(() => order.push('first'));
  const controller = new AbortController();
  const { signal } = controller;
  const queued = errorOf(engine.attention(...small, { signal }));
  const last = engine.attention(...small);
  controller.abort();
  expect(await queued.finally(() => order.push('aborted'))).toMatchObject({ code: 'ABORTED' });
  await first;
  expect(order).toEqual(['aborted', 'first']);
  expectSame((await last).output, alone);
});

test('a step of a cache on the device, which has appended nothing then', async () => {
  const cache = engine.createKVCache({ numKvHeads: 1, headDim: 8, capacity: 4 });
  const first = engine.attention(...long);
  const controller = new AbortController();
  const queued = errorOf(cache.attend(...small, { signal: controller.signal }));
  controller.abort();
  expect(await queued).toMatchObject({ code: 'ABORTED' });
  await first;
  await cache.attend(...small);
  expect(cache.lengths).toEqual([1]);
  cache.dispose();
});

test('what a call names is read before it returns', async () => {
  const wanted = (await engine.attention(...small)).output;
  const given = small.map(({ data, shape }) => ({ data: data.slice(), shape }));
  const busy = engine.attention(...long);
  const running = engine.attention(...given);
  for (const { data } of given) data.fill(7);
  expectSame((await running).output, wanted);
  await busy;
});
