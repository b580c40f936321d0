// Tests: arguments in memory that another thread writes to and grows, and arrays that say of themselves what is not so: the numbers
// are those that lie in them, and nothing else in the heap is touched.

import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { createEngine } from 'headwise';
import { readingCalls } from './support/reading-calls.js';
import { arraysOf, growable, positionsOf, trap } from './support/traps.js';
import { expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';

// Grows the buffer as soon as it is told to, after a pause, and fills what came with it.
const grower = `
  const { workerData: { signal, buffer, turns } } = require('node:worker_threads');
  Atomics.wait(signal, 0, 0);
  for (let i = 0; i < turns; i++) Atomics.load(signal, 0);
  const before = buffer.byteLength / 4;
  buffer.grow(buffer.maxByteLength);
  new Float32Array(buffer).fill(666, before);
  Atomics.store(signal, 1, 1);
  Atomics.notify(signal, 1);
`;

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 1 });
});
afterAll(() => engine.dispose());

const names = Object.keys(readingCalls);

test.each(names)('%s takes shared memory, grown by a getter or not', async (name) => {
  const { make, run } = readingCalls[name];
  const cases = fc.record({
    size: fc.constantFrom(2, 8),
    seed: fc.nat(1000),
    victim: fc.nat(1000),
    position: fc.option(fc.nat(1000), { nil: undefined }),
  });
  let results = 0;
  const property = async ({ size, seed, victim, position }) => {
    const expected = await run(engine, make(size, seed));
    const args = make(size, seed);
    const arrays = arraysOf(args);
    const [owner, key] = arrays[victim % arrays.length];
    owner[key] = growable(owner[key], 2 * owner[key].byteLength);
    const { buffer } = owner[key];
    if (position !== undefined) {
      const positions = positionsOf(args);
      trap(positions[position % positions.length], () => buffer.grow(buffer.maxByteLength));
    }
    let got;
    try {
      got = await run(engine, args);
    } catch (error) {
      if (error.matcherResult !== undefined) throw error;
      expect(position).toBeDefined();
      expect(error.code).toBe('INVALID_SHAPE');
      return;
    }
    expect(got).toEqual(expected);
    results++;
  };
  await fc.assert(fc.asyncProperty(cases, property), { numRuns: 60, seed: 13 });
  expect(results).toBeGreaterThan(10);
});

test('another thread grows an input while it is read: the numbers of one moment, and nothing else is touched', async () => {
  // Large ones, which are copied first, give the other thread its time.
  const rows = 100_000;
  const q = { data: new Float32Array(rows * 64), shape: [1, 1, rows, 64] };
  const v = { data: Float32Array.of(2), shape: [1, 1, 1, 1] };
  const known = randomTensor([1, 1, 6, 4], 1);
  const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 16 });
  const kept = randomTensor([1, 1, 8, 4], 2);
  await cache.append(kept, kept);
  const mha = engine.multiHeadAttention({ embedDim: 8, numHeads: 2 });
  const weights = await mha.getWeights();
  const output = engine.attentionSync(known, known, known).output.data;
  for (const turns of [0, 100, 10_000, 1_000_000, 4_000_000]) {
    const k = { data: growable(new Float32Array(64).fill(1), 2 ** 24), shape: [1, 1, 1, 64] };
    const signal = new Int32Array(new SharedArrayBuffer(8));
    const worker = new Worker(grower, {
      eval: true,
      workerData: { signal, buffer: k.data.buffer, turns },
    });
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    await new Promise((resolve) => worker.once('online', resolve));
    const { inUseBytes } = await engine.memory();
    Atomics.store(signal, 0, 1);
    Atomics.notify(signal, 0);
    try {
      const got = engine.attentionSync(q, k, v).output.data;
      expect(got).toHaveLength(rows);
      expect(got.every((element) => element === 2)).toBe(true);
    } catch (error) {
      if (error.matcherResult !== undefined) throw error;
      expect(error).toMatchObject({
        code: 'INVALID_SHAPE',
        message: expect.stringMatching(/^k: /),
      });
    }
    await ended;
    expect(k.data).toHaveLength(2 ** 22);
    expect((await engine.memory()).inUseBytes).toBe(inUseBytes);
    expect(engine.attentionSync(known, known, known).output.data).toEqual(output);
    expect(await mha.getWeights()).toEqual(weights);
  }
  // What lies in the cache still decides: equal to attention over the same keys.
  const query = randomTensor([1, 1, 1, 4], 3);
  const attended = cache.attendSync(query, query, query).output.data;
  const joined = (t) => ({ data: Float32Array.of(...kept.data, ...t.data), shape: [1, 1, 9, 4] });
  const expected = engine.attentionSync(query, joined(query), joined(query)).output.data;
  for (let i = 0; i < 4; i++) expect(attended[i]).toBeCloseTo(expected[i], 5);
  mha.dispose();
  cache.dispose();
});

describe('arrays that lie', () => {
  const lies = {
    length: 1000,
    byteLength: 4,
    BYTES_PER_ELEMENT: 1,
    byteOffset: 8,
    buffer: new ArrayBuffer(8),
    constructor: Uint8Array,
    subarray: () => new Float32Array(1),
    slice: () => new Float32Array(1),
    set: () => undefined,
    [Symbol.iterator]: () => [][Symbol.iterator](),
  };
  const ways = {
    'an own property': (array, name) => Object.defineProperty(array, name, { value: lies[name] }),
    'a subclass': (array, name) => {
      const Lies = class extends array.constructor {};
      Object.defineProperty(Lies.prototype, name, { get: () => lies[name] });
      return Object.setPrototypeOf(array, Lies.prototype);
    },
  };
  const cases = Object.keys(ways).flatMap((way) =>
    Reflect.ownKeys(lies).map((name) => [way, name]),
  );

  test.each(cases)('by %s, %p', async (way, lie) => {
    for (const name of names) {
      const { make, run } = readingCalls[name];
      const expected = await run(engine, make(8, 5));
      const args = make(8, 5);
      for (const [owner, key] of arraysOf(args)) owner[key] = ways[way](owner[key], lie);
      const { inUseBytes } = await engine.memory();
      expect([name, await run(engine, args)]).toEqual([name, expected]);
      expect([name, (await engine.memory()).inUseBytes]).toEqual([name, inUseBytes]);
    }
    await expectWorks(engine);
  });
});
