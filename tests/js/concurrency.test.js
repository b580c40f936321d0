// Tests: several calls and engines at once: order, snapshots, aborts, dispose, and calls between the slices of another.

import { createEngine } from 'headwise';
import { expectSame } from './compare.js';
import { runModule } from './child.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

// Many slices of work: about 4·L²·D·H multiplications.
const long = (seed, length = 2048) => {
  const shape = [1, 8, length, 64];
  return [randomTensor(shape, seed), randomTensor(shape, seed + 1), randomTensor(shape, seed + 2)];
};

test('50 overlapping calls of different sizes, each as if alone', async () => {
  const inputs = Array.from({ length: 50 }, (_, i) => {
    const [L, S, D] = [1 + (i % 7), 1 + ((3 * i) % 40), 1 + (i % 9)];
    return [
      randomTensor([1, 2, L, D], i),
      randomTensor([1, 2, S, D], i + 100),
      randomTensor([1, 2, S, D], i + 200),
    ];
  });
  const alone = inputs.map((input) => engine.attentionSync(...input).output);
  const together = await Promise.all(inputs.map((input) => engine.attention(...input)));
  together.forEach(({ output }, i) => expectSame(output, alone[i], `call ${i}`));
});

test('8 engines started at once', async () => {
  const engines = await Promise.all(Array.from({ length: 8 }, () => createEngine({ threads: 2 })));
  for (const one of engines) expect(one.info.threads).toBe(2);
  await Promise.all(engines.map(expectWorks));
  engines.forEach((one) => one.dispose());
  await expectWorks(engine);
});

test('inputs are read when the call is made, queued or not', async () => {
  const make = (value) => ({ data: Float32Array.of(value), shape: [1, 1] });
  const busy = engine.attention(...long(1));
  const v = make(5);
  const queued = engine.attention(make(0), make(0), v);
  v.data[0] = 7;
  expect((await queued).output.data[0]).toBe(5);
  await busy;
  const atOnce = engine.attention(make(0), make(0), v);
  v.data[0] = 9;
  expect((await atOnce).output.data[0]).toBe(7);
});

test('synchronous calls between the slices of a long one change nothing', async () => {
  const inputs = long(4);
  const alone = (await engine.attention(...inputs)).output;
  let done = false;
  const running = engine.attention(...inputs).finally(() => (done = true));
  const small = long(9, 33);
  const expected = engine.attentionSync(...small).output;
  let between = 0;
  while (!done) {
    expectSame(engine.attentionSync(...small).output, expected);
    between++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expectSame((await running).output, alone);
  expect(between).toBeGreaterThan(1);
});

test('the event loop lives during a long call', async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  await engine.attention(...long(2));
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(1);
});

test('an abort is heard during the call, in the queue, and before', async () => {
  const inputs = long(3, 4096);
  const controller = new AbortController();
  const running = errorOf(() => engine.attention(...inputs, { signal: controller.signal }));
  const queued = errorOf(() => engine.attention(...inputs, { signal: controller.signal }));
  setTimeout(() => controller.abort(new Error('enough')), 5);
  for (const error of [await running, await queued]) {
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toMatchObject({ name: 'AbortError', code: 'ABORTED' });
    expect(error.cause).toMatchObject({ message: 'enough' });
  }
  const signal = AbortSignal.abort();
  expect(await errorOf(() => engine.attention(...inputs, { signal }))).toMatchObject({
    code: 'ABORTED',
  });
  expect(await errorOf(() => engine.attentionSync(...inputs, { signal }))).toMatchObject({
    code: 'ABORTED',
  });
  await expectWorks(engine);
});

test('dispose during a call rejects it and those behind it', async () => {
  const other = await createEngine({ threads: 2 });
  const calls = [1, 2, 3].map((seed) => errorOf(() => other.attention(...long(seed, 4096))));
  await new Promise((resolve) => setTimeout(resolve, 5));
  other.dispose();
  for (const call of calls)
    expect(await call).toMatchObject({ name: 'HeadwiseError', code: 'DISPOSED' });
  await expectWorks(engine);
});

test('a process with an engine in use ends by itself', async () => {
  const report = await runModule(`
    import { createEngine } from 'headwise';
    const engine = await createEngine({ threads: 3 });
    const remote = await createEngine({ threads: 2, offMainThread: true });
    const t = (data) => ({ data: Float32Array.from(data), shape: [data.length, 1] });
    const a = await engine.attention(t([0]), t([0, 0]), t([2, 4]));
    const b = await remote.attention(t([0]), t([0, 0]), t([2, 4]));
    console.log(JSON.stringify({ a: a.output.data[0], b: b.output.data[0] }));
  `);
  expect(report).toMatchObject({ a: 3, b: 3, stderr: '' });
});
