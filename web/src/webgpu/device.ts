// WebGPU: finds an adapter and asks it for a device with its own limits. Nothing is remembered: each start asks anew.
// The only file that touches navigator.gpu. Start reading at openDevice.
import type { GpuReasonCode } from '../gpu-info.js';
import { messageOf } from '../wasm/files.js';
import type { DeviceLimits } from './plan.js';

/** A device, and what is known of it. */
export interface Opened {
  device: GPUDevice;
  /** Ours to destroy, as against the caller's. */
  owned: boolean;
  description: string;
  /** A CPU pretends to be the GPU. */
  software: boolean;
  limits: DeviceLimits;
  features: { f16: boolean; subgroups: boolean };
  /** Threads of its smallest subgroup; 0 without the feature. */
  subgroupSize: number;
}

/** Why there is no device, in words. */
export class NoDevice extends Error {
  readonly code: GpuReasonCode;

  constructor(code: GpuReasonCode, message: string) {
    super(message);
    this.code = code;
  }
}

// No adapter answers later than this without something being wrong with the driver.
const deadlineMs = 10_000;

// Multiply-adds in about 100 ms: of a slow integrated GPU with a kernel that runs at a tenth of its peak, and of a CPU.
const dispatchWork = { hardware: 1e9, software: 2.5e7 };

export async function openDevice(given: GPUDevice | undefined): Promise<Opened> {
  if (given !== undefined) return describeDevice(given, given.adapterInfo, false);
  const gpu = await findGpu();
  const adapter = await within(
    () => gpu.requestAdapter({ powerPreference: 'high-performance' }),
    'navigator.gpu.requestAdapter()',
    'no-adapter',
  );
  if (adapter === null)
    throw new NoDevice(
      'no-adapter',
      'no WebGPU adapter answered: this machine has no GPU, or its browser allows none',
    );
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupsPerDimension } =
    adapter.limits;
  const device = await within(
    () =>
      adapter.requestDevice({
        label: 'headwise',
        requiredFeatures: adapter.features.has('subgroups') ? ['subgroups'] : [],
        requiredLimits: {
          maxBufferSize,
          maxStorageBufferBindingSize,
          maxComputeWorkgroupsPerDimension,
        },
      }),
    'adapter.requestDevice()',
    'no-device',
  );
  return describeDevice(device, adapter.info, true);
}

function describeDevice(
  device: GPUDevice,
  info: GPUAdapterInfo | undefined,
  owned: boolean,
): Opened {
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupsPerDimension } =
    device.limits;
  const words = [info?.vendor, info?.architecture, info?.description].filter(Boolean).join(' ');
  const software =
    info?.isFallbackAdapter === true || /swiftshader|llvmpipe|lavapipe|basic render/i.test(words);
  return {
    device,
    owned,
    description: words === '' ? 'unnamed adapter' : words,
    software,
    limits: {
      bindingBytes: Math.min(maxBufferSize, maxStorageBufferBindingSize),
      workgroups: maxComputeWorkgroupsPerDimension,
      dispatchWork: software ? dispatchWork.software : dispatchWork.hardware,
    },
    features: {
      f16: device.features.has('shader-f16'),
      subgroups: device.features.has('subgroups'),
    },
    subgroupSize: device.features.has('subgroups') ? (info?.subgroupMinSize ?? 0) : 0,
  };
}

async function findGpu(): Promise<GPU> {
  const { navigator, isSecureContext, process } = globalThis as {
    navigator?: { gpu?: GPU };
    isSecureContext?: boolean;
    process?: { versions?: { node?: string } };
  };
  const gpu = navigator?.gpu;
  if (gpu !== undefined && gpu !== null) return gpu;
  if (process?.versions?.node !== undefined) return nodeGpu();
  if (isSecureContext === false)
    throw new NoDevice(
      'insecure-page',
      'WebGPU needs a secure page: serve it over https, or from localhost',
    );
  throw new NoDevice('no-webgpu', 'this platform has no WebGPU (navigator.gpu)');
}

/** Dawn for Node, the optional peer dependency. Bundlers see no import of it. */
async function nodeGpu(): Promise<GPU> {
  const specifier = 'webgpu';
  let dawn: { create(options: string[]): GPU };
  try {
    dawn = (await import(/* @vite-ignore */ /* webpackIgnore: true */ specifier)) as typeof dawn;
  } catch (error) {
    throw new NoDevice(
      'no-webgpu',
      `this platform has no WebGPU (navigator.gpu), and the package 'webgpu' cannot be loaded: ${messageOf(error)}`,
    );
  }
  return dawn.create([]);
}

async function within<T>(ask: () => Promise<T>, what: string, code: GpuReasonCode): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new NoDevice(code, `${what} did not answer within ${deadlineMs / 1000} s`)),
      deadlineMs,
    );
  });
  try {
    return await Promise.race([ask(), late]);
  } catch (error) {
    throw error instanceof NoDevice
      ? error
      : new NoDevice(code, `${what} failed: ${messageOf(error)}`);
  } finally {
    clearTimeout(timer);
  }
}
