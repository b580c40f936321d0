// Tests: the heap: growth, no leak, failed allocations, the accounting.

import { createEngine } from 'headwise';
import { runModule } from './child.js';
import { expectClose, expectSame } from './compare.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { byHand } from './tolerances.js';

const square = (length, size, seed) =>
  [0, 1, 2].map((i) => randomTensor([1, 1, length, size], seed + i));

describe('accounting', () => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ threads: 2 });
  });
  afterAll(() => engine.dispose());

  test('20,000 calls leave the heap as it was, errors and results included', async () => {
    const inputs = square(4, 3, 1);
    const wrong = [inputs[0], inputs[1], randomTensor([1, 1, 5, 3], 2)];
    const all = { returnWeights: true, returnLogSumExp: true, returnScores: 'masked' };
    const round = (count) => {
      for (let i = 0; i < count; i++) {
        if (i % 2 === 0) engine.attentionSync(...inputs, i % 4 === 0 ? all : {});
        else expect(() => engine.attentionSync(...wrong)).toThrow(RangeError);
      }
    };
    round(100);
    const before = await engine.memory();
    round(19_900);
    expect(await engine.memory()).toEqual(before);
  });

  test('calls of any kind and size give back what they took', async () => {
    const { inUseBytes } = await engine.memory();
    for (const length of [1, 7, 100, 1000]) await engine.attention(...square(length, 16, length));
    await errorOf(() =>
      // Far longer than a slice, so that the signal is heard between two.
      engine.attention(...square(8192, 64, 1), { signal: AbortSignal.timeout(1) }),
    );
    expect((await engine.memory()).inUseBytes).toBe(inUseBytes);
  });

  test('layers are counted, and are gone after dispose; 200 of them in a row leave nothing', async () => {
    const before = (await engine.memory()).inUseBytes;
    const make = () => engine.multiHeadAttention({ embedDim: 64, numHeads: 4 });
    const mha = make();
    expect((await engine.memory()).inUseBytes).toBeGreaterThan(before + 4 * 64 * 64 * 4);
    await mha.forward(randomTensor([2, 5, 64], 1));
    mha.dispose();
    expect((await engine.memory()).inUseBytes).toBe(before);
    const { heapBytes } = await engine.memory();
    for (let i = 0; i < 200; i++) make().dispose();
    expect(await engine.memory()).toMatchObject({ heapBytes, inUseBytes: before });
  });

  test('heap, peak and use are in order', async () => {
    const memory = await engine.memory();
    expect(memory.gpuBytes).toBe(0);
    expect(memory.inUseBytes).toBeLessThanOrEqual(memory.peakBytes);
    expect(memory.peakBytes).toBeLessThanOrEqual(memory.heapBytes);
  });
});

test.each([1, 3])(
  'the heap grows between calls and results stay right, %d threads',
  async (threads) => {
    const engine = await createEngine({ threads });
    const small = square(8, 8, 1);
    const expected = engine.attentionSync(...small).output;
    let { heapBytes } = await engine.memory();
    let growths = 0;
    // Up to 120 MB for one input. Equal scores, so that the answer is the values' own.
    for (const length of [2_000, 16_000, 40_000, 80_000, 120_000, 160_000, 240_000]) {
      const make = (rows, value) => {
        const data = new Float32Array(rows * 128).fill(value);
        return { data, shape: [1, 1, rows, 128] };
      };
      const { output } = await engine.attention(make(2, 1), make(length, 0.25), make(length, 0.5));
      expectClose(output, new Float32Array(256).fill(0.5), byHand);
      expectSame(engine.attentionSync(...small).output, expected);
      const now = (await engine.memory()).heapBytes;
      if (now > heapBytes) growths++;
      heapBytes = now;
    }
    expect(growths).toBeGreaterThanOrEqual(5);
    engine.dispose();
  },
);

test('more than the ceiling is OUT_OF_MEMORY with the bytes wanted, and the next call works', async () => {
  const engine = await createEngine({ threads: 2, maxMemoryBytes: 32 * 2 ** 20 });
  const big = randomTensor([1, 1, 200_000, 16], 1);
  const error = await errorOf(() => engine.attention(big, big, big));
  expect(error).toBeInstanceOf(RangeError);
  expect(error.code).toBe('OUT_OF_MEMORY');
  expect(error.message).toMatch(/\d+ bytes/);
  expect(error.bytesWanted).toBeGreaterThan(4 * 200_000 * 16);
  await expectWorks(engine);
  const layer = await errorOf(() => engine.multiHeadAttention({ embedDim: 4096, numHeads: 8 }));
  expect(layer).toMatchObject({ name: 'RangeError', code: 'OUT_OF_MEMORY' });
  await expectWorks(engine);
  engine.dispose();
});

test('sizes whose bytes wrap 32 bits are refused before any work', async () => {
  const engine = await createEngine({ threads: 2 });
  const { heapBytes } = await engine.memory();
  const wide = randomTensor([1, 16, 16_384, 1], 1);
  const long = randomTensor([1, 1, 65_536, 1], 1);
  for (const t of [wide, long]) {
    const error = await errorOf(() => engine.attention(t, t, t, { returnWeights: true }));
    expect(error).toMatchObject({ name: 'RangeError', code: 'OUT_OF_MEMORY' });
    expect(error.bytesWanted).toBeGreaterThanOrEqual(2 ** 34);
  }
  expect((await engine.memory()).heapBytes).toBe(heapBytes);
  await expectWorks(engine);
  engine.dispose();
});

test('without shared memory: one thread with a reason and a warning, and the heap grows all the same', async () => {
  const report = await runModule(`
    const { Memory } = WebAssembly;
    WebAssembly.Memory = function (descriptor) {
      if (descriptor.shared) throw new RangeError('no shared memory here');
      return new Memory(descriptor);
    };
    const { createEngine } = await import('headwise');
    const engine = await createEngine({ threads: 4 });
    const t = (length, size, value) => ({
      data: new Float32Array(length * size).fill(value),
      shape: [1, 1, length, size],
    });
    const values = [];
    for (const length of [1, 20_000, 60_000, 3]) {
      const { output } = await engine.attention(t(2, 64, 1), t(length, 64, 0.25), t(length, 64, 0.5));
      values.push(output.data[0]);
    }
    const mha = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 });
    const { shape } = (await mha.forward({ data: new Float32Array(12), shape: [3, 4] })).output;
    const { heapBytes } = await engine.memory();
    const kept = typeof Atomics.waitAsync;
    console.log(JSON.stringify({ values, shape, heapBytes, info: engine.info, kept }));
  `);
  report.values.forEach((value) => expect(value).toBeCloseTo(0.5, 5));
  expect(report.shape).toEqual([3, 4]);
  expect(report.heapBytes).toBeGreaterThan(20 * 2 ** 20);
  expect(report.info.threads).toBe(1);
  expect(report.info.threadsReason).toMatch(/shared/);
  expect(report.stderr.match(/headwise: one thread only/g)).toHaveLength(1);
  expect(report.kept).toBe(typeof Atomics.waitAsync);
});
