// Tests: every shader compiles: the baseline's on a device without optional features, whatever the machine has; all forms on
// Dawn's device without a driver, which knows every feature and checks code, layouts and limits, and computes nothing.

import { create } from './node_modules/webgpu/index.js';
import { baselineKinds, kinds } from '../../dist/webgpu/pipelines.js';

// One for all tests, and held: Dawn crashes when an instance is collected before what was made from it.
const withoutDriver = create(['backend=null']);
const held = [withoutDriver];

async function compile(device, { text, bindings }) {
  const code = text();
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
}

test.each(Object.keys(baselineKinds))('%s, on this device', async (name) => {
  const adapter = await globalThis.navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice(); // the least limits, no features
  expect(kinds[name].text()).not.toMatch(/^enable /m);
  await compile(device, kinds[name]);
  device.destroy();
});

test.each(Object.keys(kinds))('%s, without a driver', async (name) => {
  const { needs, text } = kinds[name];
  const adapter = await withoutDriver.requestAdapter();
  // With what it says it needs, and no more.
  const enabled = [...text().matchAll(/^enable (\w+);/gm)].map(([, feature]) => feature);
  expect(enabled).toEqual(needs === undefined ? [] : [needs.feature]);
  if (needs !== undefined && !adapter.features.has(needs.feature))
    throw new Error(`Dawn's null backend lacks '${needs.feature}': ${name} was not compiled`);
  const device = await adapter.requestDevice({ requiredFeatures: enabled });
  held.push(adapter, device);
  await compile(device, kinds[name]);
  device.destroy();
});
