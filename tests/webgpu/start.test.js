// Tests: the GPU's start in the background: with 'auto' nobody waits for it, and the core computes until it is there.

import { createEngine } from '../../dist/index.js';
import { expectClose } from '../js/compare.js';
import { randomTensor } from '../js/support/random.js';
import { alwaysGpu } from './support/device.js';

const tolerance = { absolute: 1e-4, relative: 1e-5 };
const x = randomTensor([1, 2, 8, 4], 1);
const { gpu } = globalThis.navigator;

// One device for all, since its pipelines take SwiftShader a while; it outlives whoever destroys it.
let device;
let destroyed = 0;
beforeAll(async () => {
  device = await (await gpu.requestAdapter()).requestDevice();
  device.destroy = () => void destroyed++;
});

/** navigator.gpu whose adapter comes when `release` is called. */
function slowGpu() {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const { limits, features, adapterInfo: info } = device;
  const adapter = { limits, features, info, requestDevice: async () => device };
  setGpu({ requestAdapter: () => released.then(() => adapter) });
  return release;
}

function setGpu(value) {
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { hardwareConcurrency: 2, gpu: value },
  });
}
afterEach(() => setGpu(gpu));

test("'auto' starts at once, computes on the core, and goes over to the GPU", async () => {
  const release = slowGpu();
  const engine = await createEngine({ threads: 1, gpuCost: alwaysGpu });
  expect(engine.info).toMatchObject({ backend: 'wasm', gpu: null, gpuReasonCode: 'starting' });
  expect(engine.info.gpuReason).toMatch(/being started/);
  const { output } = await engine.attention(x, x, x);
  expect(engine.lastCall).toMatchObject({ side: 'wasm', reason: engine.info.gpuReason });
  // What cannot be without a GPU waits for it, with the arguments of now.
  const input = { data: x.data.slice(), shape: x.shape };
  const resident = engine.attention(input, input, input, { resident: true });
  const uploaded = engine.upload(input);
  input.data.fill(NaN);
  expect(() => engine.wrap({}, [1])).toThrow(/gpuReady/);
  // A layer of before, of which the GPU has to learn.
  const layer = engine.multiHeadAttention({ embedDim: 8, numHeads: 2 });
  release();
  expect(await engine.gpuReady()).toMatchObject({ backend: 'auto', gpu: { cost: alwaysGpu } });
  expectClose(await (await resident).output.download(), output, tolerance);
  expect((await (await uploaded).download()).data).toEqual(x.data);
  expectClose((await engine.attention(x, x, x)).output, output, tolerance);
  expect(engine.lastCall.side).toBe('webgpu');
  const tokens = randomTensor([5, 8], 6);
  expectClose((await layer.forward(tokens)).output, layer.forwardSync(tokens).output, tolerance);
  engine.dispose();
});

test('an engine that is disposed of while its GPU starts leaves no device behind', async () => {
  const release = slowGpu();
  const before = destroyed;
  const engine = await createEngine({ threads: 1, gpuCost: alwaysGpu });
  const waiting = engine.upload(x).catch((error) => error);
  const ready = engine.gpuReady();
  engine.dispose();
  release();
  await ready;
  expect(await waiting).toMatchObject({ code: 'DISPOSED' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(destroyed).toBeGreaterThan(before);
});

test("'webgpu' waits for it", async () => {
  const release = slowGpu();
  let started = false;
  const starting = createEngine({ backend: 'webgpu', threads: 1 }).finally(() => (started = true));
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(started).toBe(false);
  release();
  const engine = await starting;
  expect(engine.info).toMatchObject({ backend: 'webgpu', gpu: { software: true } });
  expect(engine.info.gpuReason).toBeUndefined();
  engine.dispose();
});
