// Tests: every shader compiles on a device without optional features, and stays within the limits that every device has.

import { kinds } from '../../dist/webgpu/pipelines.js';

test.each(Object.keys(kinds))('%s', async (name) => {
  const adapter = await globalThis.navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice(); // the least limits, no features
  const { text, bindings } = kinds[name];
  const code = text();
  expect(code).not.toMatch(/^enable /m);
  expect(Object.values(bindings).filter((kind) => kind !== 'uniform').length).toBeLessThanOrEqual(
    8,
  );
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code });
  const { messages } = await module.getCompilationInfo();
  expect(messages.map(({ message, lineNum }) => `${lineNum}: ${message}`)).toEqual([]);
  const layout = device.createBindGroupLayout({
    entries: Object.entries(bindings).map(([binding, type]) => ({
      binding: Number(binding),
      visibility: 4,
      buffer: { type },
    })),
  });
  await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: 'main' },
  });
  expect(await device.popErrorScope()).toBeNull();
  device.destroy();
});
