// Tests, WebGPU: one real device, wrapped so that tests can count what is made of it and let it fail.

const { gpu } = globalThis.navigator;

/** A device with the adapter's limits; `hooks` are called, where set, before the method of the same name. */
export async function hookedDevice(limits) {
  const adapter = await gpu.requestAdapter();
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
  });
  const hooks = {};
  const live = new Set();
  const pipelines = { async: 0, sync: 0 };
  let wrong = false;
  const { createBuffer, createComputePipelineAsync, createComputePipeline } = device;
  device.createBuffer = (descriptor) => {
    hooks.createBuffer?.(descriptor);
    const buffer = createBuffer.call(device, descriptor);
    live.add(buffer);
    const { destroy, getMappedRange } = buffer;
    buffer.destroy = () => {
      live.delete(buffer);
      destroy.call(buffer);
    };
    buffer.getMappedRange = (...range) => {
      const mapped = getMappedRange.apply(buffer, range);
      if (wrong) new Float32Array(mapped)[0] += 0.01;
      return mapped;
    };
    return buffer;
  };
  device.createComputePipelineAsync = (descriptor) => {
    pipelines.async++;
    return createComputePipelineAsync.call(device, descriptor);
  };
  device.createComputePipeline = (descriptor) => {
    pipelines.sync++;
    return createComputePipeline.call(device, descriptor);
  };
  return {
    device,
    hooks,
    pipelines,
    /** Buffers that were made and not destroyed. */
    live,
    liveBytes: () => [...live].reduce((sum, { size }) => sum + size, 0),
    /** The first number of everything that is read back is off by a hundredth. */
    set wrong(value) {
      wrong = value;
    },
    limits,
  };
}

/** The same device as if its limits were these. */
export function withLimits(device, limits) {
  Object.defineProperty(device, 'limits', {
    configurable: true,
    value: {
      maxBufferSize: 2 ** 28,
      maxStorageBufferBindingSize: 2 ** 27,
      maxComputeWorkgroupsPerDimension: 65535,
      ...limits,
    },
  });
}

/** Costs that make 'auto' choose one side always. */
const even = { gpuCallMs: 1, uploadBytesPerMs: 1e6, downloadBytesPerMs: 1e6, gpuWorkPerMs: 1e6 };
export const alwaysGpu = { ...even, cpuCallMs: 1e9, cpuWorkPerMs: 1e6 };
export const neverGpu = { ...even, gpuCallMs: 1e9, cpuCallMs: 1, cpuWorkPerMs: 1e6 };
