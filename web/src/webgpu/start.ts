// WebGPU: from nothing to a GPU that is trusted and measured, or to the reason why there is none. The only way in: the engine
// loads this module when it may use a GPU, and else nothing in this folder.
import type { Host } from '../backend/backend.js';
import { costFields, type CostModel } from '../backend/cost-model.js';
import type { NoGpu, StartedGpu, Traffic } from '../backend/gpu-life.js';
import type { GpuReasonCode } from '../gpu-info.js';
import { messageOf } from '../wasm/files.js';
import type { GpuPrecision } from '../validation/engine-options.js';
import { NoDevice } from './device.js';
import { Gpu } from './gpu.js';
import { knownCosts } from './cost-store.js';
import { selfTest } from './self-test.js';

export interface GpuOptions {
  /** backend 'webgpu': used whatever it costs. */
  demanded: boolean;
  device: GPUDevice | undefined;
  /** Given instead of measured, in whole or in part. */
  cost: Partial<CostModel> | undefined;
  precision: GpuPrecision;
}

/** Never rejects. After `ended` whatever was made is destroyed. */
export async function startGpu(
  { demanded, device, cost, precision }: GpuOptions,
  core: Host,
  ended: AbortSignal,
  traffic: Traffic,
): Promise<StartedGpu | NoGpu> {
  let gpu: Gpu;
  try {
    gpu = await Gpu.start(core, device, precision);
  } catch (error) {
    return error instanceof NoDevice
      ? { code: error.code, reason: error.message }
      : { code: 'no-device', reason: `WebGPU failed: ${messageOf(error)}` };
  }
  const refuse = (code: GpuReasonCode, reason: string): NoGpu => {
    gpu.dispose();
    return { code, reason };
  };
  // Whatever of the below is under way then fails.
  const end = (): void => gpu.dispose();
  if (ended.aborted) end();
  ended.addEventListener('abort', end, { once: true });
  const { description, software } = gpu.device.opened;
  try {
    if (software && !demanded && cost === undefined) {
      return refuse(
        'software',
        `the adapter (${description}) is software: a CPU that pretends to be a GPU is slower than the CPU itself`,
      );
    }
    await gpu.device.warmUp();
    const fault = await selfTest(gpu, core);
    if (fault !== undefined)
      return refuse('wrong', `the GPU (${description}) computes wrongly: ${fault}`);
    if (demanded) return { gpu, cost: null };
    const isWhole = cost !== undefined && costFields.every((name) => cost[name] !== undefined);
    const measured = isWhole ? undefined : await knownCosts(gpu, core, traffic);
    return { gpu, cost: { ...measured, ...cost } as CostModel };
  } catch (error) {
    return refuse('failed', `the GPU (${description}) failed its self-test: ${messageOf(error)}`);
  } finally {
    ended.removeEventListener('abort', end);
  }
}
