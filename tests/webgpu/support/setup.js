// Tests, WebGPU: before each test file: navigator.gpu from Dawn for Node, on whatever Vulkan driver the environment names
// (scripts/lib/vulkan.mjs), and bodies shared with tests/js run over backend 'webgpu'.
import { create } from '../node_modules/webgpu/index.js';

// SwiftShader compiles the zeroing of workgroup memory, which WebGPU promises and these kernels do not need, many times
// slower than the kernels. Without it their memory holds leftovers, which is the harder test.
const gpu = create(['enable-dawn-features=disable_workgroup_init']);

Object.defineProperty(globalThis, 'navigator', {
  configurable: true,
  value: { gpu, hardwareConcurrency: 2 },
});
process.env.HEADWISE_BACKEND = 'webgpu';
