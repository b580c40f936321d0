// Tests: known faults of WebGPU on a device: limits (D3, D4), read-back (D9), leaks (D10), pipelines (D12), tensors on the
// device, and devices that fail, lie, or are lost. One device serves all; the last tests destroy it.

import { createEngine } from '../../dist/index.js';
import { baselineKinds } from '../../dist/webgpu/pipelines.js';
import { expectClose, expectSame } from '../js/compare.js';
import { randomTensor } from '../js/support/random.js';
import { alwaysGpu, hookedDevice, neverGpu, withLimits } from './support/device.js';

const tolerance = { absolute: 1e-4, relative: 1e-5 };
const x = randomTensor([1, 2, 8, 4], 1);

let hooked;
let engine;
const engines = [];
const open = async (options) => {
  const made = await createEngine({ threads: 1, gpuDevice: hooked.device, ...options });
  engines.push(made);
  await made.gpuReady();
  return made;
};
const errorOf = (promise) => promise.then(() => undefined).catch((error) => error);

beforeAll(async () => {
  hooked = await hookedDevice();
  engine = await open({ backend: 'webgpu' });
});
afterAll(() => {
  for (const each of engines) each.dispose();
});

test('D12: pipelines are made asynchronously, at the start, and never again', async () => {
  const { async: made, sync } = hooked.pipelines;
  expect(sync).toBe(0);
  expect(made).toBeLessThanOrEqual(Object.keys(baselineKinds).length);
  for (let S = 1; S <= 200; S += 7) {
    const k = randomTensor([1, 2, S, 4], S);
    await engine.attention(randomTensor([1, 2, 1, 4], 2), k, k);
    expect(engine.lastCall.side).toBe('webgpu');
  }
  const second = await open({ backend: 'webgpu' });
  await second.attention(x, x, x);
  expect(hooked.pipelines).toEqual({ async: made, sync: 0 });
});

test('D9: overlapping calls, half of them aborted, with calls on the CPU between', async () => {
  const controllers = [];
  const calls = Array.from({ length: 30 }, (_, i) => {
    const value = { data: new Float32Array(i + 1).fill(i), shape: [i + 1, 1] };
    const controller = new AbortController();
    controllers.push(controller);
    return engine.attention({ data: [1], shape: [1, 1] }, value, value, {
      signal: controller.signal,
    });
  });
  controllers.filter((_, i) => i % 2 === 1).forEach((controller) => controller.abort());
  const results = await Promise.allSettled(calls);
  results.forEach(({ status, value, reason }, i) => {
    if (i % 2 === 1) expect(reason).toMatchObject({ name: 'AbortError', code: 'ABORTED' });
    else {
      expect(status).toBe('fulfilled');
      expectClose(value.output, [i], tolerance);
    }
  });
  expectSame(engine.attentionSync(x, x, x).output, engine.attentionSync(x, x, x).output);
});

test('inputs are read when the call is made', async () => {
  const input = randomTensor([1, 2, 8, 4], 3);
  const wanted = engine.attentionSync(input, input, input).output;
  const running = [engine.attention(input, input, input), engine.attention(input, input, input)];
  input.data.fill(NaN);
  for (const { output } of await Promise.all(running)) expectClose(output, wanted, tolerance);
});

test('D10: buffers are bounded by the largest call, and gone after dispose', async () => {
  const before = new Set(hooked.live);
  const own = await open({ backend: 'webgpu' });
  const bytes = () =>
    [...hooked.live].filter((b) => !before.has(b)).reduce((n, { size }) => n + size, 0);
  let largest = 0;
  for (let L = 1; L <= 400; L += 13) {
    const q = randomTensor([L, 8], L);
    const k = randomTensor([3, 8], L);
    await own.attention(q, k, k);
    largest = Math.max(largest, 3 * L * 8 * 4 + L * 12 * 2);
    await errorOf(own.attention(q, k, randomTensor([4, 8], 1)));
  }
  expect((await own.memory()).gpuBytes).toBe(bytes());
  // Small calls are dwarfed by the self-test's buffers.
  expect(bytes()).toBeLessThan(4 * largest + 2 ** 20);
  expect(bytes()).toBeGreaterThan(0);
  own.dispose();
  expect(bytes()).toBe(0);
});

test('tensors stay on the device, are taken wherever tensors are, and are counted', async () => {
  const plain = engine.attentionSync(x, x, x, { returnLogSumExp: true });
  const before = (await engine.memory()).gpuBytes;
  const onGpu = await engine.upload(x);
  const big = await engine.upload(randomTensor([1 << 18], 5));
  expect((await engine.memory()).gpuBytes).toBeGreaterThanOrEqual(before + 2 ** 20);
  expect(onGpu.shape).toEqual(x.shape);
  expectSame(await onGpu.download(), x);
  const result = await engine.attention(onGpu, x, onGpu, { resident: true, returnLogSumExp: true });
  expect(result.output.data).toBeUndefined();
  expectClose(await result.output.download(), plain.output, tolerance);
  expectClose(await result.logSumExp.download(), plain.logSumExp, tolerance);
  expect(result.logSumExp.shape).toEqual([1, 2, 8]);
  // From one call to the next without leaving.
  const again = await engine.attention(result.output, onGpu, onGpu);
  expectClose(again.output, engine.attentionSync(plain.output, x, x).output, tolerance);
  // Where the core has to do the work, they are fetched.
  const layer = engine.multiHeadAttention({ embedDim: 8, numHeads: 2, score: 'additive' });
  const tokens = randomTensor([5, 8], 6);
  const onGpuTokens = await engine.upload(tokens);
  const kept = await layer.forward(onGpuTokens, undefined, undefined, { resident: true });
  expect(engine.lastCall).toMatchObject({
    side: 'wasm',
    reason: "score 'additive' runs on the CPU",
  });
  expectClose(await kept.output.download(), layer.forwardSync(tokens).output, tolerance);
  const scaling = { type: 'linear', factor: 2 };
  const table = randomTensor([5, 2], 7);
  for (const rope of [{ scaling }, { cos: table, sin: table }]) {
    const turning = engine.multiHeadAttention({ embedDim: 8, numHeads: 2, rope });
    const turned = await turning.forward(onGpuTokens);
    const reason = rope.scaling ? 'rope.scaling runs on the CPU' : 'rope.tables runs on the CPU';
    expect(engine.lastCall).toMatchObject({ side: 'wasm', reason });
    expectClose(turned.output, turning.forwardSync(tokens).output, tolerance);
    turning.dispose();
  }
  // Disposed of while a call uses it: the call is right all the same.
  const running = engine.attention(onGpu, x, x);
  onGpu.dispose();
  onGpu.dispose();
  expectClose((await running).output, plain.output, tolerance);
  expect(await errorOf(engine.attention(onGpu, x, x))).toMatchObject({ code: 'DISPOSED' });
  expect(() => engine.attentionSync(result.output, x, x)).toThrow(/GPU tensors/);
  const other = await open({ backend: 'wasm', gpuDevice: undefined });
  expect(await errorOf(other.attention(result.output, x, x))).toMatchObject({
    code: 'INVALID_VALUE',
  });
  for (const each of [big, result.output, result.logSumExp, onGpuTokens, kept.output])
    each.dispose();
});

test("a caller's buffer is read in place and never destroyed", async () => {
  const buffer = hooked.device.createBuffer({ size: 256, usage: 0x80 | 0x08 | 0x04 });
  hooked.device.queue.writeBuffer(buffer, 0, x.data);
  const wrapped = engine.wrap(buffer, x.shape);
  const { output } = await engine.attention(wrapped, wrapped, wrapped);
  expectClose(output, engine.attentionSync(x, x, x).output, tolerance);
  expect(wrapped.gpuBuffer).toBe(buffer);
  wrapped.dispose();
  expect(hooked.live.has(buffer)).toBe(true);
  expect(() => engine.wrap(buffer, [65])).toThrow(/260 bytes/);
  expect(() => engine.wrap({}, [1])).toThrow(TypeError);
  buffer.destroy();
});

test('D4: more workgroups than one dimension takes', async () => {
  // SwiftShader needs minutes for 65,537 of them, so the limit is lowered; the plan's own test knows the real one.
  const { limits } = hooked.device;
  withLimits(hooked.device, { maxComputeWorkgroupsPerDimension: 15 });
  try {
    const narrow = await open({ backend: 'webgpu' });
    for (const H of [14, 15, 16, 17, 211]) {
      const one = { data: new Float32Array(H).fill(1), shape: [1, H, 1, 1] };
      const v = { data: Float32Array.from({ length: H }, (_, h) => h % 7), shape: [1, H, 1, 1] };
      expectSame((await narrow.attention(one, one, v)).output, v.data);
    }
    const zeros = (n) => ({ data: new Float32Array(n), shape: [n, 1] });
    const mean = await narrow.attention(zeros(1000), zeros(2), { data: [2, 4], shape: [2, 1] });
    expect(mean.output.data.every((y) => y === 3)).toBe(true);
  } finally {
    Object.defineProperty(hooked.device, 'limits', { configurable: true, value: limits });
  }
});

test('D3: arrays above the limits go in pieces; what has none, to the CPU or a RangeError that names the limit', async () => {
  const limits = hooked.device.limits;
  withLimits(hooked.device, { maxStorageBufferBindingSize: 65536 });
  try {
    const auto = await open({ gpuCost: alwaysGpu });
    const small = await open({ backend: 'webgpu' });
    const k = { data: new Float32Array(16385), shape: [16385, 1] };
    const v = { data: new Float32Array(16385).fill(1), shape: [16385, 1] };
    const q = { data: [1], shape: [1, 1] };
    for (const each of [auto, small]) {
      expect([...(await each.attention(q, k, v)).output.data]).toEqual([1]);
      expect(each.lastCall.side).toBe('webgpu');
    }
    // Heads, queries and keys in several ranges, and everything that is joined.
    const [many, keys, values] = [
      randomTensor([1, 4, 70, 64], 1),
      randomTensor([1, 2, 500, 64], 2),
      randomTensor([1, 2, 500, 40], 3),
    ];
    const options = {
      ...{ causal: true, causalOffset: 300, sinks: [1, 0, -1, 2], alibiSlopes: [1, 0.5, 0.2, 0] },
      ...{ returnWeights: { heads: [3, 0] }, returnScores: 'masked', returnLogSumExp: true },
      bias: randomTensor([70, 500], 4),
    };
    const wanted = engine.attentionSync(many, keys, values, options);
    const got = await small.attention(many, keys, values, options);
    expect(small.lastCall.side).toBe('webgpu');
    for (const name of Object.keys(wanted)) expectClose(got[name], wanted[name], tolerance, name);
    const [rows, kernel] = [randomTensor([300, 70], 5), randomTensor([70, 64], 6)];
    expectClose(await small.linear(rows, kernel), engine.linearSync(rows, kernel), tolerance);
    expect(small.lastCall.side).toBe('webgpu');
    // Layers, batch by batch.
    const layer = small.multiHeadAttention({ embedDim: 8, numHeads: 2, outputDim: 6, rope: {} });
    const [query, key] = [randomTensor([5, 200, 8], 7), randomTensor([5, 30, 8], 8)];
    const lengths = { kvLengths: [30, 1, 20, 7, 13], qLengths: [200, 3, 150, 1, 77] };
    const masked = {
      ...lengths,
      ...{ causal: true, averageWeights: true, returnLogSumExp: true },
      bias: randomTensor([5, 1, 1, 30], 9),
    };
    const onGpu = await layer.forward(query, key, key, masked);
    expect(small.lastCall.side).toBe('webgpu');
    const onCpu = layer.forwardSync(query, key, key, masked);
    expect(Object.keys(onGpu)).toEqual(Object.keys(onCpu));
    for (const name of Object.keys(onCpu))
      expectClose(onGpu[name], onCpu[name], tolerance, `layer, ${name}`);
    // A row cannot be divided.
    const row = { data: new Float32Array(20000).fill(0.01), shape: [1, 20000] };
    expectClose((await auto.attention(row, row, row)).output, row.data, tolerance);
    expect(auto.lastCall.side).toBe('wasm');
    expect(auto.lastCall.reason).toMatch(/maxStorageBufferBindingSize of 65536/);
    const error = await errorOf(small.attention(row, row, row));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect(await errorOf(small.upload(k))).toMatchObject({ code: 'OUT_OF_MEMORY' });
    expectClose(
      (await small.attention(x, x, x)).output,
      engine.attentionSync(x, x, x).output,
      tolerance,
    );
  } finally {
    Object.defineProperty(hooked.device, 'limits', { configurable: true, value: limits });
  }
});

test("'auto' goes by cost, which info shows", async () => {
  const eager = await open({ gpuCost: alwaysGpu });
  expect(eager.info).toMatchObject({ backend: 'auto', gpu: { software: true, cost: alwaysGpu } });
  await eager.attention(x, x, x);
  expect(eager.lastCall).toMatchObject({ side: 'webgpu' });
  expect(eager.lastCall.reason).toMatch(/estimated .* ms on the GPU/);
  const shy = await open({ gpuCost: neverGpu });
  await shy.attention(x, x, x);
  expect(shy.lastCall).toMatchObject({ side: 'wasm' });
});

test('a device that answers wrongly is retired by the self-test', async () => {
  hooked.wrong = true;
  try {
    const auto = await open({ gpuCost: alwaysGpu });
    expect(auto.info).toMatchObject({ backend: 'wasm', gpu: null });
    expect(auto.info.gpuReason).toMatch(/computes wrongly.*self-test/);
    const error = await errorOf(open({ backend: 'webgpu' }));
    expect(error).toMatchObject({ code: 'UNSUPPORTED' });
  } finally {
    hooked.wrong = false;
  }
});

test('validation errors: the CPU does the call, or the caller is told, and no number of that call is used', async () => {
  const auto = await open({ gpuCost: alwaysGpu });
  const demanding = await open({ backend: 'webgpu' });
  hooked.hooks.createBuffer = (descriptor) => {
    descriptor.usage = 0x80; // nothing can be copied to it
  };
  try {
    const big = randomTensor([1, 1, 999, 7], 2);
    const wanted = engine.attentionSync(big, big, big).output;
    expectSame((await auto.attention(big, big, big)).output, wanted);
    expect(auto.info).toMatchObject({ backend: 'wasm', gpu: null });
    expect(auto.info.gpuReason).toMatch(/the GPU failed/);
    expect(await errorOf(demanding.attention(big, big, big))).toMatchObject({
      code: 'DEVICE_LOST',
    });
  } finally {
    hooked.hooks.createBuffer = undefined;
  }
  // The next call finds a device again.
  expectClose(
    (await demanding.attention(x, x, x)).output,
    engine.attentionSync(x, x, x).output,
    tolerance,
  );
  expect(demanding.info.backend).toBe('webgpu');
});

test('a lost device: the CPU goes on, or DEVICE_LOST; tensors on it say so', async () => {
  const auto = await open({ gpuCost: alwaysGpu });
  const tensor = await auto.upload(x);
  const wanted = engine.attentionSync(x, x, x).output;
  const running = auto.attention(x, x, x);
  const demanded = errorOf(engine.attention(x, x, x));
  hooked.device.destroy();
  expectClose((await running).output, wanted, tolerance);
  expect([undefined, 'DEVICE_LOST']).toContain((await demanded)?.code);
  expectClose((await auto.attention(x, x, x)).output, wanted, tolerance);
  expect(auto.lastCall.side).toBe('wasm');
  expect(auto.info).toMatchObject({ backend: 'wasm', gpu: null });
  expect(auto.info.gpuReason).toMatch(/lost/);
  expect(await errorOf(engine.attention(x, x, x))).toMatchObject({ code: 'DEVICE_LOST' });
  expect(await errorOf(tensor.download())).toMatchObject({ code: 'DEVICE_LOST' });
  expect(await errorOf(auto.attention(tensor, x, x))).toMatchObject({ code: 'DEVICE_LOST' });
  expectSame(auto.attentionSync(x, x, x).output, wanted);
});
