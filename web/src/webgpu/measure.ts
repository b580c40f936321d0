// WebGPU: measures both sides on this machine for the cost model: a call that does next to nothing, the way to the device and
// back, and the rates of long calls. Takes a few tenths of a second on a real GPU; the result is kept for the process.
import type { CostModel } from '../cost-model.js';
import { readAttention } from '../validation/attention.js';
import type { Host } from '../wasm/host.js';
import type { Gpu } from './gpu.js';

// By adapter and threads: engines made one after the other measure once.
const known = new Map<string, CostModel>();

const noLayer = (): Promise<never> => Promise.reject(new Error('no layer'));

function squareCall(heads: number, length: number, size: number) {
  const data = new Float32Array(heads * length * size).fill(0.1);
  const shape = [1, heads, length, size];
  return readAttention({ data, shape }, { data, shape }, { data, shape }, undefined).request;
}

async function least(times: number, work: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await work();
    best = Math.min(best, performance.now() - start);
  }
  return Math.max(best, 0.001);
}

export async function measureCosts(gpu: Gpu, core: Host): Promise<CostModel> {
  const key = `${gpu.opened.description} ${core.info.threads} ${core.info.variant}`;
  const found = known.get(key);
  if (found !== undefined) return found;

  const small = squareCall(1, 1, 4);
  const gpuCallMs = await least(5, () => gpu.run(small, undefined, noLayer));
  const cpuCallMs = await least(5, () => core.run(small));

  const bytes = 4 * 2 ** 20;
  const block = new Float32Array(bytes / 4);
  let uploadMs = Infinity;
  let downloadMs = Infinity;
  for (let i = 0; i < 3; i++) {
    const start = performance.now();
    const tensor = await gpu.upload(block);
    const middle = performance.now();
    await tensor.download();
    tensor.dispose();
    uploadMs = Math.min(uploadMs, middle - start);
    downloadMs = Math.min(downloadMs, performance.now() - middle);
  }
  // An upload is only queued when it is done; the way back cannot be faster than it is, and no link is that lopsided.
  const downloadBytesPerMs = bytes / Math.max(downloadMs - gpuCallMs, 0.01);
  const uploadBytesPerMs = Math.min(bytes / Math.max(uploadMs, 0.01), 4 * downloadBytesPerMs);

  // Doubled until one call takes long enough for the fixed parts not to matter.
  const rate = async (
    run: (request: ReturnType<typeof squareCall>) => Promise<unknown>,
    callMs: number,
    first: number,
  ): Promise<number> => {
    for (let length = first; ; length *= 2) {
      const request = squareCall(4, length, 64);
      const took = await least(2, () => run(request));
      const work = 4 * length * length * 128;
      if (took > callMs * 4 + 4 || length >= 4096) return work / Math.max(took - callMs, 0.01);
    }
  };
  const gpuWorkPerMs = await rate(
    (request) => gpu.run(request, undefined, noLayer),
    gpuCallMs,
    512,
  );
  const cpuWorkPerMs = await rate((request) => core.run(request), cpuCallMs, 128);
  const model: CostModel = {
    gpuCallMs,
    uploadBytesPerMs,
    downloadBytesPerMs,
    gpuWorkPerMs,
    cpuCallMs,
    cpuWorkPerMs,
  };
  known.set(key, model);
  return model;
}
