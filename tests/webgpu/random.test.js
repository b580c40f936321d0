// Tests: random shapes and options on the GPU against the core, and every option where it changes the result (D8).

import { createEngine } from '../../dist/index.js';
import { randomSource, randomTensor } from '../js/support/random.js';
import { expectClose, expectSame } from '../js/compare.js';

// Float32 on both sides, sums in another order, inputs of unit scale.
const tolerance = { absolute: 1e-4, relative: 1e-5 };

let gpu;
let cpu;
beforeAll(async () => {
  gpu = await createEngine({ backend: 'webgpu', threads: 1 });
  cpu = await createEngine({ backend: 'wasm', threads: 1 });
});
afterAll(async () => {
  gpu.dispose();
  cpu.dispose();
});

async function both(q, k, v, options) {
  const [a, b] = [await gpu.attention(q, k, v, options), cpu.attentionSync(q, k, v, options)];
  for (const name of Object.keys(b)) {
    expect(a[name].shape).toEqual(b[name].shape);
    expectClose(a[name], b[name], tolerance, name);
  }
  expect(Object.keys(a)).toEqual(Object.keys(b));
  return b;
}

const flags = (length, next) => Uint8Array.from({ length }, () => (next() < 0.7 ? 1 : 0));

function randomCase(seed) {
  const next = randomSource(seed * 7919 + 1);
  const pick = (...list) => list[Math.floor(next() * list.length)];
  const chance = (p, make) => (next() < p ? make() : {});
  const [B, G] = [pick(1, 1, 2), pick(1, 1, 2)];
  const H = G * pick(1, 1, 2, 3);
  const [L, S] = [pick(1, 2, 5, 17, 31, 33, 40), pick(1, 3, 16, 63, 64, 65, 130)];
  const [D, Dv] = [pick(1, 3, 8, 16, 17, 33), pick(1, 4, 7, 16, 65)];
  const blhd = next() < 0.3;
  const shape = (heads, rows, size) => (blhd ? [B, rows, heads, size] : [B, heads, rows, size]);
  const lengths = (most) => Array.from({ length: B }, () => Math.floor(next() * (most + 1)));
  const target = [pick(1, B), pick(1, H), pick(1, L), pick(1, S)].slice(pick(0, 0, 1, 2));
  const size = target.reduce((a, b) => a * b, 1);
  const options = {
    ...(blhd && { layout: 'blhd' }),
    ...chance(0.2, () => ({ scale: 2 * next() - 1 })),
    ...chance(0.2, () => ({ softcap: 0.5 + next() })),
    ...chance(0.3, () => ({ bias: randomTensor(target, seed) })),
    ...chance(0.3, () => ({ mask: { data: flags(size, next), shape: target } })),
    ...chance(0.2, () => ({ keyPaddingMask: { data: flags(B * S, next), shape: [B, S] } })),
    ...chance(0.2, () => ({ kvLengths: lengths(S) })),
    ...chance(0.2, () => ({ qLengths: lengths(L) })),
    ...chance(0.4, () => ({ causal: true })),
    ...chance(0.2, () => ({ causalOffset: pick(0, -3, 5, 1000, -1000) })),
    ...chance(0.3, () => ({
      window: [pick(0, 2, 30, Infinity), pick(0, 1, 9, Infinity, 2 ** 29)],
    })),
    ...chance(0.2, () => ({ alibiSlopes: randomTensor([H], seed).data })),
    ...chance(0.2, () => ({ sinks: randomTensor([H], seed + 1).data })),
    ...chance(0.2, () => ({ dropout: { rate: pick(0.1, 0.5, 1), seed } })),
    ...chance(0.3, () => ({ returnWeights: pick(true, { heads: H > 1 ? [H - 1, 0] : [0] }) })),
    ...chance(0.3, () => ({ returnScores: pick('raw', 'softcapped', 'masked') })),
    ...chance(0.5, () => ({ returnLogSumExp: true })),
  };
  return [
    randomTensor(shape(H, L, D), seed),
    randomTensor(shape(G, S, D), seed + 1),
    randomTensor(shape(G, S, Dv), seed + 2),
    options,
  ];
}

test.each(Array.from({ length: 10 }, (_, i) => i))('random cases, lot %i', async (lot) => {
  for (let seed = lot * 8; seed < lot * 8 + 8; seed++) {
    const [q, k, v, options] = randomCase(seed);
    try {
      await both(q, k, v, options);
      expect(gpu.lastCall.side).toBe('webgpu');
    } catch (error) {
      const shapes = [q, k, v].map(({ shape }) => `[${shape}]`).join(' ');
      error.message = `seed ${seed}, ${shapes}, ${Object.keys(options)}: ${error.message}`;
      throw error;
    }
  }
});

const [q, k, v] = [
  randomTensor([1, 2, 3, 4], 1),
  randomTensor([1, 2, 5, 4], 2),
  randomTensor([1, 2, 5, 3], 3),
].map(({ data, shape }) => ({ data: data.map((x) => 4 * x), shape }));

test.each(
  Object.entries({
    'mask [L,S]': {
      mask: { data: [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0].map(Boolean), shape: [3, 5] },
    },
    'mask [S]': { mask: { data: Uint8Array.of(0, 1, 0, 0, 1), shape: [5] } },
    'mask [H,1,S]': {
      mask: { data: Uint8Array.of(0, 1, 0, 0, 1, 1, 0, 0, 1, 0), shape: [2, 1, 5] },
    },
    'mask [B,H,L,1]': { mask: { data: Uint8Array.of(0, 1, 1, 0, 1, 0), shape: [1, 2, 3, 1] } },
    keyPaddingMask: { keyPaddingMask: [[false, true, false, false, true]] },
    bias: { bias: { data: [9, -9, 9, -9, 9], shape: [5] } },
    'bias of −Infinity': { bias: { data: [-Infinity, 0, -Infinity, -Infinity, 0], shape: [5] } },
    causal: { causal: true },
    causalOffset: { causal: true, causalOffset: 0 },
    window: { window: [0, 0] },
    softcap: { softcap: 0.5 },
    scale: { scale: -2 },
    alibiSlopes: { alibiSlopes: [3, 5] },
    sinks: { sinks: [5, 5] },
    dropout: { dropout: { rate: 0.5, seed: 3 } },
    kvLengths: { kvLengths: [2] },
    qLengths: { qLengths: [1] },
  }),
)('D8: %s changes the result, and alike on both sides', async (_, options) => {
  const plain = cpu.attentionSync(q, k, v);
  const { output } = await both(q, k, v, {
    ...options,
    returnWeights: true,
    returnLogSumExp: true,
  });
  const change = Math.max(...output.data.map((x, i) => Math.abs(x - plain.output.data[i])));
  expect(change).toBeGreaterThan(0.1);
});

test('all 53 bits of a dropout seed count, alike on both sides', async () => {
  const [rows, keys] = [8, 16];
  const zeros = (length) => ({ data: new Float32Array(length), shape: [length, 1] });
  const powers = { data: new Float32Array(keys).map((_, j) => 1.5 ** j), shape: [keys, 1] };
  const seen = new Set();
  // Seeds that differ above 2^32 alone, then one that differs below.
  for (const seed of [5, 5 + 2 ** 32, 5 + 2 ** 40, 5 + 2 ** 52, 6]) {
    const dropout = { rate: 0.5, seed };
    const [q, k] = [zeros(rows), zeros(keys)];
    const { output } = await gpu.attention(q, k, powers, { dropout });
    expect(gpu.lastCall.side).toBe('webgpu');
    const wanted = cpu.attentionSync(q, k, powers, { dropout }).output;
    expectClose(output, wanted, tolerance, `seed ${seed}`);
    seen.add(output.data.join());
  }
  expect(seen.size).toBe(5);
});

test('asking for more changes no bit of the output, nor does a second run', async () => {
  const first = await gpu.attention(q, k, v, { causal: true });
  const all = { returnWeights: true, returnScores: 'masked', returnLogSumExp: true };
  const second = await gpu.attention(q, k, v, { causal: true, ...all });
  expectSame(second.output, first.output);
});

test('NaN and infinity in hidden keys stay hidden; in kept ones they show (D7)', async () => {
  const [S, D] = [150, 5];
  const key = randomTensor([S, D], 5);
  const value = randomTensor([S, D], 6);
  const query = randomTensor([4, D], 7);
  const mask = { data: Uint8Array.from({ length: S }, (_, j) => Number(j % 2 === 0)), shape: [S] };
  const clean = cpu.attentionSync(query, key, value, { mask });
  for (let j = 1; j < S; j += 2) {
    key.data[j * D] = [NaN, Infinity, -Infinity][j % 3];
    value.data[j * D + 1] = [NaN, Infinity, -Infinity][j % 3];
  }
  const { output } = await gpu.attention(query, key, value, { mask });
  expectClose(output, clean.output, tolerance);
  value.data[2 * D + 1] = NaN;
  const shown = await gpu.attention(query, key, value, { mask });
  expect(shown.output.data[1]).toBeNaN();
  expectClose([shown.output.data[0]], [clean.output.data[0]], tolerance);
});

test('softcap of large scores, and 4096 equal keys (D7)', async () => {
  const large = { data: [1000, -1000], shape: [2, 1] };
  const capped = await gpu.attention(
    { data: [1], shape: [1, 1] },
    large,
    { data: [1, 0], shape: [2, 1] },
    { softcap: 1, scale: 1 },
  );
  expectClose(capped.output, [0.880797], tolerance);
  const S = 4096;
  const zeros = { data: new Float32Array(S), shape: [S, 1] };
  const steps = {
    data: Float32Array.from({ length: S }, (_, j) => (j < S / 2 ? 0 : 4)),
    shape: [S, 1],
  };
  const mean = await gpu.attention({ data: [0], shape: [1, 1] }, zeros, steps);
  expectClose(mean.output, [2], tolerance);
});

test('layers agree, whatever of them the GPU does', async () => {
  for (const config of [
    { embedDim: 12, numHeads: 3 },
    {
      embedDim: 10,
      numHeads: 4,
      numKvHeads: 2,
      headDim: 5,
      valueHeadDim: 3,
      outputDim: 7,
      bias: false,
      score: 'dot',
    },
    { embedDim: 8, numHeads: 2, rope: {} },
    { embedDim: 12, numHeads: 2, numKvHeads: 1, rope: { interleaved: true, dim: 4, base: 100 } },
    { embedDim: 8, numHeads: 2, valueHeadDim: 3, merge: 'sum' },
    { embedDim: 6, numHeads: 3, score: 'cosine' },
    { embedDim: 8, numHeads: 2, projection: { type: 'conv', kernelSize: 3, causal: false } },
    { embedDim: 8, numHeads: 2, projection: { type: 'conv', kernelSize: 4, causal: true } },
    { embedDim: 8, numHeads: 2, score: 'additive' },
  ]) {
    const layers = [gpu, cpu].map((engine) => engine.multiHeadAttention({ ...config, seed: 5 }));
    const x = randomTensor([2, 9, config.embedDim], 8);
    const y = randomTensor([2, 35, config.embedDim], 9);
    const options = { qLengths: [9, 4], causal: true, returnWeights: true, returnLogSumExp: true };
    const averaged = { kvLengths: [35, 20], averageWeights: true };
    const means = await Promise.all(layers.map((layer) => layer.forward(x, y, y, averaged)));
    for (const name of ['output', 'weights'])
      expectClose(means[0][name], means[1][name], tolerance, name);
    expect(means[0].weights.shape).toEqual([2, 9, 35]);
    for (let round = 0; round < 2; round++) {
      const [a, b] = await Promise.all(layers.map((layer) => layer.forward(x, y, y, options)));
      for (const name of Object.keys(b)) expectClose(a[name], b[name], tolerance, name);
      const side = config.score === 'additive' ? 'wasm' : 'webgpu';
      expect(gpu.lastCall).toMatchObject({ op: 'layerForward', side });
      const { output } = await layers[0].getWeights();
      const kernel = { data: output.kernel.data.map((w) => 2 * w), shape: output.kernel.shape };
      for (const layer of layers) await layer.setWeights({ output: { kernel } });
    }
    for (const layer of layers) layer.dispose();
  }
});

test('linear', async () => {
  const [x, w, b] = [
    randomTensor([3, 11, 70], 1),
    randomTensor([70, 67], 2),
    randomTensor([67], 3),
  ];
  const y = await gpu.linear(x, w, b);
  expect(y.shape).toEqual([3, 11, 67]);
  expectClose(y, cpu.linearSync(x, w, b), tolerance);
});

test('sizes of zero', async () => {
  const empty = (...shape) => ({ data: new Float32Array(0), shape });
  await both(empty(2, 1, 0, 4), empty(2, 1, 0, 4), empty(2, 1, 0, 4), { returnWeights: true });
  await both(randomTensor([1, 2, 3, 4], 1), empty(1, 2, 0, 4), empty(1, 2, 0, 5), {
    returnLogSumExp: true,
  });
  await both(empty(1, 1, 3, 0), empty(1, 1, 5, 0), randomTensor([1, 1, 5, 2], 2), {});
});
