// Tests, browser: the GPU backend in Chromium, on its SwiftShader, beside the core in its worker; and that 'auto' leaves a page's
// console alone where there is no GPU.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { errorsIn, launchChromium, openPage, swiftShader } from './support/chromium.js';
import { gotoEnginePage, serveEnginePage } from './support/engine-page.js';
import { acrossBackends } from './support/tolerances.js';

let server;
beforeAll(async () => {
  server = await serveEnginePage(true);
});
afterAll(() => server?.close());

async function withPage(args, work) {
  const browser = await launchChromium({ args });
  try {
    const { page, said } = await openPage(browser);
    await gotoEnginePage(page, server);
    return await work(page, said);
  } finally {
    await browser.close();
  }
}

test('backend webgpu computes what the core computes, options and all', async () => {
  await withPage(swiftShader, async (page, said) => {
    const result = await page.evaluate(async () => {
      const { createEngine } = globalThis.headwise;
      const gpu = await createEngine({ backend: 'webgpu', threads: 1 });
      const cpu = await createEngine({ backend: 'wasm', threads: 1 });
      const random = (...shape) => {
        const length = shape.reduce((a, b) => a * b);
        return { data: Float32Array.from({ length }, (_, i) => Math.sin(i * i + length)), shape };
      };
      const [q, k, v] = [random(2, 4, 17, 9), random(2, 2, 70, 9), random(2, 2, 70, 5)];
      const differences = [];
      for (const options of [
        {},
        { causal: true, softcap: 2, sinks: [1, 2, 3, 4], returnLogSumExp: true },
        { window: [3, 1], dropout: { rate: 0.3, seed: 5 }, returnWeights: true },
      ]) {
        const [a, b] = [
          await gpu.attention(q, k, v, options),
          await cpu.attention(q, k, v, options),
        ];
        for (const name of Object.keys(b))
          differences.push(Math.max(...a[name].data.map((x, i) => Math.abs(x - b[name].data[i]))));
      }
      const onGpu = await gpu.upload(q);
      const kept = await gpu.attention(onGpu, k, v, { resident: true });
      const back = await kept.output.download();
      const { info, lastCall } = gpu;
      const { gpuBytes } = await gpu.memory();
      gpu.dispose();
      cpu.dispose();
      return { info, lastCall, gpuBytes, differences, shape: back.shape };
    });
    expect(result.info).toMatchObject({ backend: 'webgpu', offMainThread: true });
    expect(result.info.gpu).toMatchObject({ software: true });
    expect(result.lastCall.side).toBe('webgpu');
    expect(result.gpuBytes).toBeGreaterThan(0);
    expect(result.shape).toEqual([2, 4, 17, 5]);
    for (const difference of result.differences) expect(difference).toBeLessThan(acrossBackends);
    expect(errorsIn(said)).toEqual([]);
  });
});

test("'auto' leaves a software adapter, and says so in info alone", async () => {
  await withPage(swiftShader, async (page, said) => {
    const info = await page.evaluate(async () => {
      const engine = await globalThis.headwise.createEngine({ threads: 1 });
      const told = await engine.gpuReady();
      engine.dispose();
      return told;
    });
    expect(info).toMatchObject({ backend: 'wasm', gpu: null });
    expect(info.gpuReason).toMatch(/software/);
    expect(errorsIn(said)).toEqual([]);
  });
});

test('what was measured is kept for the next visit; a damaged entry is measured anew', async () => {
  await withPage(swiftShader, async (page, said) => {
    const visit = () =>
      page.evaluate(async () => {
        // One number of our own lets 'auto' take the software adapter; the others are measured.
        const options = { threads: 1, gpuCost: { gpuCallMs: 1 } };
        const engine = await globalThis.headwise.createEngine(options);
        const early = engine.info.gpuReasonCode;
        const { gpu } = await engine.gpuReady();
        engine.dispose();
        const keys = Object.keys(localStorage).filter((key) => key.startsWith('headwise'));
        return { early, gpu, keys, kept: localStorage.getItem(keys[0]) };
      });
    const reload = async (text) => {
      await page.evaluate(([key, value]) => localStorage.setItem(key, value), text);
      await gotoEnginePage(page, server);
    };
    const first = await visit();
    expect(first.early).toBe('starting');
    expect(first.keys).toHaveLength(1);
    const costs = JSON.parse(first.kept);
    expect(first.gpu.cost).toEqual({ ...costs, gpuCallMs: 1 });
    await reload([first.keys[0], JSON.stringify({ ...costs, cpuCallMs: 12345 })]);
    expect((await visit()).gpu.cost.cpuCallMs).toBe(12345);
    await reload([first.keys[0], '{"cpuCallMs":']);
    const third = await visit();
    expect(JSON.parse(third.kept)).toEqual({ ...third.gpu.cost, gpuCallMs: expect.any(Number) });
    expect(errorsIn(said)).toEqual([]);
  });
});
