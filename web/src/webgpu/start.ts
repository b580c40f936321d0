// WebGPU: from nothing to a GPU that is trusted and measured, or to the reason why there is none. The only way in: the engine
// loads this module when it may use a GPU, and else nothing in this folder.
import type { CostModel } from '../cost-model.js';
import type { StartedGpu } from '../router.js';
import { messageOf } from '../wasm/files.js';
import type { GpuPrecision } from '../validation/engine-options.js';
import type { Host } from '../wasm/host.js';
import { NoDevice } from './device.js';
import { Gpu } from './gpu.js';
import { measureCosts } from './measure.js';
import { selfTest } from './self-test.js';

export interface GpuOptions {
  /** backend 'webgpu': used whatever it costs. */
  demanded: boolean;
  device: GPUDevice | undefined;
  /** Given instead of measured, in whole or in part. */
  cost: Partial<CostModel> | undefined;
  precision: GpuPrecision;
}

/** Never rejects. */
export async function startGpu(
  { demanded, device, cost, precision }: GpuOptions,
  core: Host,
): Promise<StartedGpu | { reason: string }> {
  let gpu: Gpu;
  try {
    gpu = await Gpu.start(device, precision);
  } catch (error) {
    return {
      reason: error instanceof NoDevice ? error.message : `WebGPU failed: ${messageOf(error)}`,
    };
  }
  const refuse = (reason: string): { reason: string } => {
    gpu.dispose();
    return { reason };
  };
  const { description, software } = gpu.opened;
  if (software && !demanded && cost === undefined) {
    return refuse(
      `the adapter (${description}) is software: a CPU that pretends to be a GPU is slower than the CPU itself`,
    );
  }
  try {
    await gpu.warmUp();
    const fault = await selfTest(gpu, core);
    if (fault !== undefined) return refuse(`the GPU (${description}) computes wrongly: ${fault}`);
    if (demanded) return { gpu, cost: null };
    const isWhole = cost !== undefined && Object.keys(cost).length === 6;
    const measured = isWhole ? undefined : await measureCosts(gpu, core);
    return { gpu, cost: { ...measured, ...cost } as CostModel };
  } catch (error) {
    return refuse(`the GPU (${description}) failed its self-test: ${messageOf(error)}`);
  }
}
