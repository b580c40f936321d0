// WebGPU: measures both sides on this machine for the cost model: a call that does next to nothing, the way to the device and
// back, and the rates of long calls. Takes a few tenths of a second on a real GPU; cost-store.ts keeps the result. Start
// reading at measureCosts.
import type { Backend } from '../backend/backend.js';
import type { CostModel } from '../backend/cost-model.js';
import type { Traffic } from '../backend/gpu-life.js';
import type { AttentionRequest } from '../request.js';
import { readAttention } from '../validation/attention.js';
import type { WorkingDevice } from './working-device.js';

/** In milliseconds. */
export interface Clock {
  now(): number;
  pause(ms: number): Promise<void>;
}

const realClock: Clock = {
  now: () => performance.now(),
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

function squareCall(heads: number, length: number, size: number): AttentionRequest {
  const data = new Float32Array(heads * length * size).fill(0.1);
  const shape = [1, heads, length, size];
  return readAttention({ data, shape }, { data, shape }, { data, shape }, undefined).request;
}

// How often a piece is timed again when a call of the caller's came between: who calls without a pause is measured all the same.
const mostTries = 4;
const patienceMs = 200;
const pauseMs = 10;

/** Times pieces of work that no call of the caller's delays. */
class Stopwatch {
  readonly #traffic: Traffic;
  readonly #clock: Clock;

  constructor(traffic: Traffic, clock: Clock) {
    this.#traffic = traffic;
    this.#clock = clock;
  }

  async time(work: () => Promise<unknown>): Promise<number> {
    const traffic = this.#traffic;
    const clock = this.#clock;
    for (let tries = 1; ; tries++) {
      for (let ms = 0; traffic.running > 0 && ms < patienceMs; ms += pauseMs)
        await clock.pause(pauseMs);
      const { calls, running } = traffic;
      const start = clock.now();
      await work();
      const took = clock.now() - start;
      if ((running === 0 && traffic.calls === calls) || tries === mostTries)
        return Math.max(took, 0.001);
    }
  }

  async least(times: number, work: () => Promise<unknown>): Promise<number> {
    let best = Infinity;
    for (let i = 0; i < times; i++) best = Math.min(best, await this.time(work));
    return best;
  }
}

/** Multiply-adds a millisecond, of calls that are doubled until one takes long enough for the fixed parts not to matter. */
async function rate(
  watch: Stopwatch,
  run: (request: AttentionRequest) => Promise<unknown>,
  callMs: number,
  first: number,
): Promise<number> {
  for (let length = first; ; length *= 2) {
    const request = squareCall(4, length, 64);
    const took = await watch.least(2, () => run(request));
    const work = 4 * length * length * 128;
    if (took > callMs * 4 + 4 || length >= 4096) return work / Math.max(took - callMs, 0.01);
  }
}

/** `gpu` and `core` need no more than what is used here, so that tests can stand in for them. */
export async function measureCosts(
  gpu: Pick<Backend, 'run'> & { device: Pick<WorkingDevice, 'upload'> },
  core: Pick<Backend, 'run'>,
  traffic: Traffic,
  clock: Clock = realClock,
): Promise<CostModel> {
  const watch = new Stopwatch(traffic, clock);
  const onGpu = (request: AttentionRequest) => gpu.run(request);
  const onCpu = (request: AttentionRequest) => core.run(request);
  const small = squareCall(1, 1, 4);
  const gpuCallMs = await watch.least(5, () => onGpu(small));
  const cpuCallMs = await watch.least(5, () => onCpu(small));

  const bytes = 4 * 2 ** 20;
  const block = new Float32Array(bytes / 4);
  let uploadMs = Infinity;
  let downloadMs = Infinity;
  for (let i = 0; i < 3; i++) {
    let tensor: Awaited<ReturnType<WorkingDevice['upload']>> | undefined;
    const up = await watch.time(async () => {
      tensor?.dispose();
      tensor = await gpu.device.upload(block);
    });
    const there = tensor as NonNullable<typeof tensor>;
    const down = await watch.time(() => there.download());
    there.dispose();
    uploadMs = Math.min(uploadMs, up);
    downloadMs = Math.min(downloadMs, down);
  }
  // An upload is only queued when it is done; the way back cannot be faster than it is, and no link is that lopsided.
  const downloadBytesPerMs = bytes / Math.max(downloadMs - gpuCallMs, 0.01);
  const uploadBytesPerMs = Math.min(bytes / Math.max(uploadMs, 0.01), 4 * downloadBytesPerMs);

  return {
    gpuCallMs,
    uploadBytesPerMs,
    downloadBytesPerMs,
    gpuWorkPerMs: await rate(watch, onGpu, gpuCallMs, 512),
    cpuCallMs,
    cpuWorkPerMs: await rate(watch, onCpu, cpuCallMs, 128),
  };
}
