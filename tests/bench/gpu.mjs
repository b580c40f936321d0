// Bench: attention on the GPU beside two threads of our own WebAssembly, in Node with Dawn. Prints a Markdown table that names
// the adapter. One process, sides interleaved, medians; inputs of 'resident' lie on the device already.
import { parseArgs } from 'node:util';
import { create } from '../webgpu/node_modules/webgpu/index.js';
import { gpuShapes, workOf } from './gpu-shapes.mjs';
import { median } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    software: { type: 'boolean' },
    most: { type: 'string', default: '200' },
    precision: { type: 'string', default: 'f32' },
  },
});

// See tests/webgpu/support/setup.js.
const gpu = create(values.software ? ['enable-dawn-features=disable_workgroup_init'] : []);
Object.defineProperty(globalThis, 'navigator', {
  configurable: true,
  value: { gpu, hardwareConcurrency: 2 },
});
const { createEngine } = await import('../../dist/index.js');

const random = (...shape) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.random() - 0.5),
  shape,
});

/** Multiply-adds a second that a kernel of nothing else reaches: the device's ceiling for f32. */
async function peak() {
  const adapter = await gpu.requestAdapter();
  const device = await adapter.requestDevice();
  const [rounds, groups] = values.software ? [256, 64] : [4096, 4096];
  const names = [0, 1, 2, 3, 4, 5, 6, 7];
  const module = device.createShaderModule({
    code: `@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
  let x = vec4f(f32(id.x) * 1e-9);
  ${names.map((n) => `var a${n} = x + ${n}.0;`).join(' ')}
  for (var i = 0; i < ${rounds}; i++) { ${names.map((n) => `a${n} = fma(a${n}, x, a${(n + 1) % 8});`).join(' ')} }
  out[id.x % 256u] = ${names.map((n) => `a${n}`).join(' + ')};
}`,
  });
  const pipeline = await device.createComputePipelineAsync({
    layout: 'auto',
    compute: { module, entryPoint: 'main' },
  });
  const buffer = device.createBuffer({ size: 4096, usage: 0x80 });
  const entries = [{ binding: 0, resource: { buffer } }];
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const times = [];
  for (let i = 0; i < 5; i++) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(groups);
    pass.end();
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    times.push((performance.now() - start) / 1000);
  }
  device.destroy();
  return (groups * 256 * rounds * 8 * 4) / Math.min(...times);
}

async function measure(call) {
  await call();
  const times = [];
  for (const begin = performance.now(); times.length < 7 && performance.now() - begin < 4000;) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  return median(times);
}

// A device of our own, to wait for its work where a call leaves its result there.
const adapter = await gpu.requestAdapter();
const { maxBufferSize, maxStorageBufferBindingSize } = adapter?.limits ?? {};
const gpuDevice = await adapter?.requestDevice({
  requiredFeatures: adapter.features.has('subgroups') ? ['subgroups'] : [],
  requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
});
const options = { backend: 'webgpu', threads: 2, gpuDevice, gpuPrecision: values.precision };
const device = await createEngine(options).catch((error) => error);
if (device instanceof Error) {
  process.stderr.write(`${device.message}\n`);
  process.exit(1);
}
const core = await createEngine({ backend: 'wasm', threads: 2 });
const most = await peak();
const { description } = device.info.gpu;
process.stdout.write(
  `${description}; f32 ceiling ${(2 * most) / 1e9} GFLOP/s; Node ${process.version}, wasm '${core.info.variant}', 2 threads\n\n` +
    '| heads × queries × keys × size | GPU, resident, ms | share of the ceiling | GPU, with transfers, ms | wasm, ms | wasm / GPU |\n' +
    '|---|---|---|---|---|---|\n',
);
for (const shape of gpuShapes.filter((s) => workOf(s) <= Number(values.most) * 1e9)) {
  const [H, L, S, D] = shape;
  const [q, k, v] = [random(1, H, L, D), random(1, H, S, D), random(1, H, S, D)];
  const onGpu = await Promise.all([q, k, v].map((tensor) => device.upload(tensor)));
  const resident = await measure(async () => {
    const { output } = await device.attention(...onGpu, { resident: true });
    await gpuDevice.queue.onSubmittedWorkDone();
    output.dispose();
  });
  const whole = await measure(() => device.attention(q, k, v));
  const wasm = await measure(() => core.attention(q, k, v));
  const share = workOf(shape) / (resident / 1000) / most;
  const cells = [shape.join(' × '), resident.toFixed(2), `${(100 * share).toFixed(1)} %`];
  process.stdout.write(
    `| ${[...cells, whole.toFixed(2), wasm.toFixed(2), (wasm / whole).toFixed(2)].join(' | ')} |\n`,
  );
  for (const tensor of onGpu) tensor.dispose();
}
process.stdout.write(`\nforms of the kernel: ${JSON.stringify(device.info.gpu.variants)}\n`);
device.dispose();
core.dispose();
process.exit(0);
