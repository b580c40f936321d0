// Tests: what decoding needs on the device: key/value caches that lie there, and parts of attention joined there; each beside
// the core's.

import { createEngine } from '../../dist/index.js';
import { expectClose, expectSame } from '../js/compare.js';
import { randomTensor } from '../js/support/random.js';
import { hookedDevice } from './support/device.js';

const tolerance = { absolute: 1e-4, relative: 1e-5 };
const errorOf = (promise) => promise.then(() => undefined).catch((error) => error);

let hooked;
let gpu;
let cpu;
beforeAll(async () => {
  hooked = await hookedDevice();
  gpu = await createEngine({ backend: 'webgpu', threads: 1, gpuDevice: hooked.device });
  cpu = await createEngine({ backend: 'wasm', threads: 1 });
});
afterAll(() => {
  gpu.dispose();
  cpu.dispose();
});

const [B, G, H, D, Dv] = [2, 2, 4, 8, 5];
const config = { batch: B, numKvHeads: G, headDim: D, valueHeadDim: Dv, capacity: 400 };
let seed = 1;
const tokens = (length, { blhd = false, batch = B } = {}) =>
  [
    [H, D],
    [G, D],
    [G, Dv],
  ].map(([heads, size]) =>
    randomTensor(blhd ? [batch, length, heads, size] : [batch, heads, length, size], seed++),
  );

async function expectSameSteps(pair, steps) {
  for (const { length, append, ...options } of steps) {
    const [q, k, v] = tokens(length, { blhd: options.layout === 'blhd', batch: pair[0].batch });
    const results = await Promise.all(
      pair.map((cache) => (append ? cache.append(k, v, options) : cache.attend(q, k, v, options))),
    );
    expect(pair[0].lengths).toEqual(pair[1].lengths);
    for (const name of Object.keys(results[1] ?? {}))
      expectClose(results[0][name], results[1][name], tolerance, name);
  }
}

const both = (extra) => [gpu, cpu].map((engine) => engine.createKVCache({ ...config, ...extra }));
const dispose = (caches) => caches.forEach((cache) => cache.dispose());

test('a prompt, chunks, single steps, ragged rows, both layouts, options', async () => {
  const pair = both();
  await expectSameSteps(pair, [
    { length: 70 },
    { length: 1, returnLogSumExp: true },
    { length: 5, lengths: [5, 2] },
    { length: 3, append: true },
    { length: 33, layout: 'blhd', returnWeights: { heads: [3, 1] } },
    { length: 2, layout: 'blhd', append: true, lengths: [0, 2] },
    { length: 4, causal: false },
    { length: 2, window: [20, 0], alibiSlopes: [1, 0.5, 0.25, 0.1], sinks: [1, 0, 2, -1] },
    { length: 1, softcap: 2, bias: randomTensor([H, 1, 119], 99), returnScores: 'masked' },
    { length: 0 },
    { length: 1, returnWeights: { heads: [] } },
    { length: 150 },
    { length: 1 },
  ]);
  expect(gpu.lastCall).toMatchObject({ op: 'cacheStep', side: 'webgpu' });
  dispose(pair);
});

test('trim, reset, fork, and what the kernels lack', async () => {
  const pair = both();
  await expectSameSteps(pair, [{ length: 40 }]);
  for (const cache of pair) await cache.trim([30, 12]);
  await expectSameSteps(pair, [{ length: 1 }, { length: 3 }]);
  const forks = pair.map((cache) => cache.fork({ rows: [1, 1, 0] }));
  await expectSameSteps(forks, [{ length: 2 }]);
  await expectSameSteps(pair, [{ length: 2 }]);
  // The core attends there, over the device's keys.
  const blockMask = { size: 64, rows: [0, 1], columns: [0] };
  await expectSameSteps(pair, [{ length: 1, blockMask }]);
  for (const cache of pair) await cache.reset();
  await expectSameSteps(pair, [{ length: 6 }]);
  dispose([...pair, ...forks]);
});

test('reading without new tokens, and tokens taken out of the middle', async () => {
  for (const rope of [undefined, { base: 30 }]) {
    const pair = both({ rope });
    await expectSameSteps(pair, [{ length: 40, lengths: [40, 33] }]);
    const read = async (rows, options) => {
      const query = randomTensor([2, H, rows, D], seed++);
      const [got, wanted] = await Promise.all(
        pair.map((cache) => cache.attend(query, undefined, undefined, options)),
      );
      for (const name of Object.keys(wanted)) expectClose(got[name], wanted[name], tolerance, name);
    };
    await read(1);
    expect(gpu.lastCall).toMatchObject({ op: 'cacheStep', side: 'webgpu' });
    await read(50, { returnLogSumExp: true, softcap: 2 });
    await read(5, { causal: true, lengths: [5, 2], returnWeights: true });
    expect(pair[0].lengths).toEqual([40, 33]);
    for (const cache of pair) await cache.drop([3, 30], [36, 33]);
    expect(pair[0].lengths).toEqual([7, 30]);
    await expectSameSteps(pair, [{ length: 3 }, { length: 1 }]);
    for (const cache of pair) await cache.drop(0, 2);
    await read(4, { causal: true });
    const forks = pair.map((cache) => cache.fork({ rows: [1, 0] }));
    for (const cache of forks) await cache.trim(5);
    await expectSameSteps(forks, [{ length: 2, lengths: [2, 1] }]);
    dispose([...pair, ...forks]);
  }
});

test("rope's tables are the cache's own, once it is made", async () => {
  const [cos, sin] = [1, 2].map((n) => randomTensor([60, 4], n));
  const passing = { cos: { ...cos, data: cos.data.slice() }, sin };
  const pair = [
    gpu.createKVCache({ ...config, rope: passing }),
    cpu.createKVCache({ ...config, rope: { cos, sin } }),
  ];
  passing.cos.data.fill(9);
  await expectSameSteps(pair, [{ length: 7 }, { length: 1 }]);
  dispose(pair);
});

test('positions of drafts', async () => {
  const pair = both({
    rope: { base: 30, scaling: { type: 'dynamic', factor: 2, originalLength: 6 } },
  });
  const positions = [
    [7, 8, 8, 9],
    [5, 6, 6, 30],
  ];
  await expectSameSteps(pair, [
    { length: 7, lengths: [7, 5] },
    { length: 4, causal: false, positions },
    { length: 3, append: true, positions: [1, 2, 50], lengths: [2, 3] },
    { length: 2 },
  ]);
  for (const cache of pair) await cache.trim([9, 8]);
  await expectSameSteps(pair, [{ length: 2 }]);
  dispose(pair);
});

const table = () => randomTensor([60, 4], seed++);
const tables = { cos: table(), sin: table() };

test.each([
  {},
  { interleaved: true, dim: 4 },
  { scaling: { type: 'linear', factor: 2 } },
  {
    scaling: {
      ...{ type: 'longrope', originalLength: 8, attentionFactor: 1.2 },
      ...{ shortFactor: [1, 2, 3, 4], longFactor: [1, 3, 5, 7] },
    },
    dim: 8,
  },
  tables,
])('rotary positions %#', async (rope) => {
  const pair = both({ rope });
  await expectSameSteps(pair, [{ length: 7 }, { length: 1 }, { length: 2, layout: 'blhd' }]);
  dispose(pair);
});

test('tensors on the device go in and come out', async () => {
  const pair = both();
  const [q, k, v] = tokens(5, { blhd: true });
  const onGpu = await Promise.all([q, k, v].map((tensor) => gpu.upload(tensor)));
  const result = await pair[0].attend(...onGpu, { layout: 'blhd', resident: true });
  const wanted = await pair[1].attend(q, k, v, { layout: 'blhd' });
  expectClose(await result.output.download(), wanted.output, tolerance);
  dispose([...pair, ...onGpu, result.output]);
});

test('memory is counted from the first step on, does not grow, and goes', async () => {
  const before = (await gpu.memory()).gpuBytes;
  const heap = (await gpu.memory()).inUseBytes;
  const cache = gpu.createKVCache({ ...config, capacity: 20000 });
  const bytes = B * G * 20000 * (D + Dv) * 4;
  await cache.attend(...tokens(1));
  const first = (await gpu.memory()).gpuBytes;
  expect(first - before).toBeGreaterThanOrEqual(bytes - 2 ** 16);
  for (let i = 0; i < 20; i++) await cache.attend(...tokens(1));
  expect((await gpu.memory()).gpuBytes - first).toBeLessThan(2 ** 16);
  expect((await gpu.memory()).inUseBytes).toBe(heap);
  const fork = cache.fork();
  await fork.append(...tokens(1).slice(1));
  expect((await gpu.memory()).gpuBytes - first).toBeGreaterThanOrEqual(bytes - 2 ** 16);
  dispose([cache, fork]);
  await gpu.attention(...tokens(1).map(({ data }) => ({ data: data.slice(0, 4), shape: [1, 4] })));
  // What is idle is kept up to what was in use at most; the next calls let it go.
  const live = hooked.liveBytes();
  expect((await gpu.memory()).gpuBytes).toBeLessThanOrEqual(live);
});

test('faults: full, aborted, synchronous, in the wrong place', async () => {
  const cache = gpu.createKVCache({ ...config, capacity: 10 });
  await cache.attend(...tokens(8));
  expect(await errorOf(cache.attend(...tokens(3)))).toMatchObject({ code: 'INVALID_SHAPE' });
  const controller = new AbortController();
  const running = errorOf(cache.attend(...tokens(1), { signal: controller.signal }));
  const behind = errorOf(cache.attend(...tokens(1)));
  controller.abort();
  expect(await running).toMatchObject({ name: 'AbortError' });
  expect(await behind).toMatchObject({ code: 'INVALID_VALUE' });
  expect(cache.lengths).toEqual([8, 8]);
  expect((await cache.attend(...tokens(2))).output.shape).toEqual([B, H, 2, Dv]);
  await cache.trim(5);
  expect(() => cache.attendSync(...tokens(1))).toThrow(/resident: false/);
  expect(() => cache.trimSync(1)).toThrow(/resident: false/);
  cache.dispose();
  expect(await errorOf(cache.append(...tokens(1).slice(1)))).toMatchObject({ code: 'DISPOSED' });
  for (const extra of [{ dtype: 'int8' }, { window: 4 }]) {
    expect(() => gpu.createKVCache({ ...config, ...extra, resident: true })).toThrow(/GPU/);
    const inHeap = gpu.createKVCache({ ...config, ...extra });
    expect(inHeap.attendSync(...tokens(1)).output.shape).toEqual([B, H, 1, Dv]);
    inHeap.dispose();
  }
  expect(() => cpu.createKVCache({ ...config, resident: true })).toThrow(/needs a GPU/);
  const inHeap = gpu.createKVCache({ ...config, resident: false });
  inHeap.attendSync(...tokens(1));
  inHeap.dispose();
});

describe('mergeAttention', () => {
  const [q, k, v] = [
    randomTensor([2, 4, 35, 8], 1),
    randomTensor([2, 2, 90, 8], 2),
    randomTensor([2, 2, 90, 5], 3),
  ];
  const only = (engine, first, end, options) =>
    engine.attention(q, k, v, {
      ...options,
      returnLogSumExp: true,
      mask: {
        data: Uint8Array.from({ length: 90 }, (_, j) => (j >= first && j < end ? 1 : 0)),
        shape: [90],
      },
    });
  const bounds = [
    [0, 0],
    [0, 30],
    [30, 31],
    [31, 90],
    [90, 90],
  ];

  test('parts join to the whole, on either side, with a part that saw nothing', async () => {
    const whole = cpu.attentionSync(q, k, v, { returnLogSumExp: true });
    const parts = await Promise.all(bounds.map(([first, end]) => only(cpu, first, end)));
    parts[0].output.data.fill(NaN);
    parts[4].output.data.fill(NaN);
    const merged = await gpu.mergeAttention(parts);
    expect(gpu.lastCall).toMatchObject({ op: 'mergeAttention', side: 'webgpu' });
    expectClose(merged.output, whole.output, tolerance);
    expectClose(merged.logSumExp, whole.logSumExp, tolerance);
    expectSame((await gpu.mergeAttention([parts[0], parts[4]])).logSumExp, parts[4].logSumExp);
  });

  test('parts that lie on the device are joined there, and stay if asked to', async () => {
    const options = { causal: true, causalOffset: -10, resident: true };
    const whole = cpu.attentionSync(q, k, v, {
      ...options,
      resident: false,
      returnLogSumExp: true,
    });
    const parts = await Promise.all(bounds.map(([first, end]) => only(gpu, first, end, options)));
    const merged = await gpu.mergeAttention(parts, { resident: true });
    expect(merged.output.data).toBeUndefined();
    expectClose(await merged.output.download(), whole.output, tolerance);
    expectClose(await merged.logSumExp.download(), whole.logSumExp, tolerance);
    for (const { output, logSumExp } of [...parts, merged]) dispose([output, logSumExp]);
  });
});

// The last: it ends the device.
test('a cache on a lost device says so', async () => {
  const cache = gpu.createKVCache(config);
  await cache.attend(...tokens(2));
  hooked.device.destroy();
  expect(await errorOf(cache.attend(...tokens(1)))).toMatchObject({ code: 'DEVICE_LOST' });
  cache.dispose();
});
