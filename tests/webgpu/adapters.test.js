// Tests: known faults of WebGPU, D1, D5, D12: platforms without it, adapters that fail, and software ones.

import { jest } from '@jest/globals';
import { createEngine } from '../../dist/index.js';

const real = globalThis.navigator.gpu;
const input = { data: Float32Array.of(0, 0), shape: [2, 1] };
const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);

function setGpu(gpu) {
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { hardwareConcurrency: 2, ...(gpu === undefined ? {} : { gpu }) },
  });
}

afterEach(() => setGpu(real));
afterAll(() => warn.mockRestore());

const failing = {
  'no navigator.gpu': [undefined, /no WebGPU/, 'no-webgpu'],
  'navigator.gpu is null': [null, /no WebGPU/, 'no-webgpu'],
  'requestAdapter gives null': [
    { requestAdapter: async () => null },
    /no WebGPU adapter/,
    'no-adapter',
  ],
  'requestAdapter rejects': [
    { requestAdapter: () => Promise.reject(new Error('driver asleep')) },
    /driver asleep/,
    'no-adapter',
  ],
  'requestAdapter throws': [
    {
      requestAdapter() {
        throw new Error('not here');
      },
    },
    /not here/,
    'no-adapter',
  ],
  'requestDevice rejects': [
    {
      requestAdapter: async () => ({
        limits: {},
        info: {},
        features: new Set(),
        requestDevice: () => Promise.reject(new Error('limits too high')),
      }),
    },
    /limits too high/,
    'no-device',
  ],
};

describe.each(Object.entries(failing))('%s', (_, [gpu, reason, code]) => {
  test("'auto' computes on the CPU and says why", async () => {
    setGpu(gpu);
    const engine = await createEngine({ threads: 1 });
    const info = await engine.gpuReady();
    expect(info).toMatchObject({ backend: 'wasm', gpu: null, gpuReasonCode: code });
    expect(info.gpuReason).toMatch(reason);
    const { output } = await engine.attention(input, input, { data: [2, 4], shape: [2, 1] });
    expect([...output.data]).toEqual([3, 3]);
    expect(engine.lastCall).toMatchObject({ side: 'wasm', op: 'attention' });
    expect(engine.lastCall.reason).toMatch(reason);
    engine.dispose();
  });

  test("'webgpu' is one clear error, and the next engine starts", async () => {
    setGpu(gpu);
    const error = await createEngine({ backend: 'webgpu', threads: 1 }).catch((e) => e);
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'UNSUPPORTED' });
    expect(error.message).toMatch(reason);
    const engine = await createEngine({ backend: 'wasm', threads: 1 });
    engine.dispose();
  });
});

test("'wasm' never touches navigator.gpu", async () => {
  let touched = 0;
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: {
      hardwareConcurrency: 2,
      get gpu() {
        touched++;
        throw new Error('touched');
      },
    },
  });
  const engine = await createEngine({ backend: 'wasm', threads: 1 });
  await engine.attention(input, input, input);
  expect(touched).toBe(0);
  expect(engine.info).toMatchObject({ backend: 'wasm', gpu: null });
  expect(engine.info.gpuReason).toBe("backend 'wasm' was asked for");
  const tensorError = await engine.upload(input).catch((e) => e);
  expect(tensorError).toMatchObject({ code: 'UNSUPPORTED' });
  const resident = await engine.attention(input, input, input, { resident: true }).catch((e) => e);
  expect(resident).toMatchObject({ code: 'UNSUPPORTED' });
  engine.dispose();
});

test('a software adapter counts as slow: auto leaves it, with the reason', async () => {
  const engine = await createEngine({ threads: 1 });
  await engine.gpuReady();
  expect(engine.info).toMatchObject({ backend: 'wasm', gpu: null });
  expect(engine.info.gpuReason).toMatch(/software/);
  engine.dispose();
});

test('options of the GPU are checked', async () => {
  for (const [options, code] of [
    [{ gpuDevice: 7 }, 'INVALID_TYPE'],
    [{ gpuCost: { gpuCallMs: 0 } }, 'INVALID_VALUE'],
    [{ gpuCost: { speed: 1 } }, 'INVALID_VALUE'],
    [{ gpuPrecision: 'f8' }, 'INVALID_VALUE'],
  ]) {
    expect(await createEngine(options).catch((e) => e)).toMatchObject({ code });
  }
});
