// Tests: every form of the attention kernel computes what the baseline does, on this device; halves as well as they can (D5, D7).

import { createEngine } from '../../dist/index.js';
import { readAttention } from '../../dist/validation/attention.js';
import { Buffers } from '../../dist/webgpu/buffers.js';
import { Pipelines } from '../../dist/webgpu/pipelines.js';
import { lanesOf } from '../../dist/webgpu/shaders/attention.js';
import { tiles } from '../../dist/webgpu/shaders/tile.js';
import { runForm, trialOn } from '../../dist/webgpu/trial.js';

const limits = { bindingBytes: 2 ** 27, workgroups: 65535, dispatchWork: 2 ** 21 };
const adapter = await globalThis.navigator.gpu.requestAdapter();
const { subgroupMinSize = 0 } = adapter.info;
const hasSubgroups = adapter.features.has('subgroups');
const device = await adapter.requestDevice({ requiredFeatures: hasSubgroups ? ['subgroups'] : [] });
const ground = { device, pipelines: new Pipelines(device), limits };
const trial = trialOn(ground);
const buffers = new Buffers(device, limits.bindingBytes);
afterAll(() => device.destroy());

const lacking = (tile) =>
  hasSubgroups && subgroupMinSize >= lanesOf(tile)
    ? undefined
    : `subgroups of ${lanesOf(tile)} threads; this adapter's have ${hasSubgroups ? subgroupMinSize : 0}`;

describe.each([
  ['tall', 1, ['vec4', 'subgroups', 'direct', 'halfSubgroups', 'halfDirect']],
  ['tall', 2, ['direct']],
  ['flat', 1, ['vec4', 'subgroups']],
])('%s %i', (name, vectors, forms) => {
  const tile = tiles[name];

  test('the baseline', async () => {
    expect(await trial(tile, vectors, 'baseline')).toBeGreaterThan(0);
  });

  for (const form of forms) {
    const lack = /subgroups/i.test(form) ? lacking(tile) : undefined;
    if (lack === undefined) {
      test(form, async () => {
        expect(await trial(tile, vectors, form)).toBeGreaterThan(0);
      });
    } else test.skip(`${form}: lacks ${lack}`, () => undefined);
  }
});

test('a form that computes something else fails its trial', async () => {
  const { createShaderModule } = device;
  device.createShaderModule = (descriptor) =>
    createShaderModule.call(device, {
      ...descriptor,
      code: descriptor.code.replace('*= params.scale', '*= params.scale * 1.01'),
    });
  try {
    const pipelines = new Pipelines(device);
    const wrong = trialOn({ ...ground, pipelines });
    expect(await wrong(tiles.tall, 1, 'baseline')).toBeGreaterThan(0);
    expect(await wrong(tiles.tall, 1, 'direct')).toBeUndefined();
  } finally {
    device.createShaderModule = createShaderModule;
  }
});

test('halves are summed as floats (D7)', async () => {
  const ones = (rows, size) => ({ data: new Float32Array(rows * size), shape: [rows, size] });
  const S = 4096;
  const steps = ones(S, 4);
  steps.data.fill(4, S * 2);
  const mean = readAttention(ones(9, 4), ones(S, 4), steps).request;
  const high = { data: new Float32Array(32).fill(60000), shape: [8, 4] };
  const largest = readAttention(ones(9, 4), ones(8, 4), high).request;
  const { output: means } = await runForm(ground, buffers, 'halfDirect', mean, 1);
  expect(Math.max(...means.map((x) => Math.abs(x - 2)))).toBeLessThan(0.01);
  const { output: highs } = await runForm(ground, buffers, 'halfDirect', largest, 1);
  expect(Math.max(...highs.map((x) => Math.abs(x - 60000)))).toBeLessThan(50);
});

test('engine.info.gpu tells what was chosen, and a large call is right in it', async () => {
  const engine = await createEngine({ backend: 'webgpu', threads: 1, gpuPrecision: 'f16' });
  expect(engine.info.gpu).toMatchObject({ precision: 'f16', variants: {} });
  const shape = [1, 4, 96, 64];
  const x = { data: Float32Array.from({ length: 4 * 96 * 64 }, (_, i) => Math.sin(i * i)), shape };
  const { output } = await engine.attention(x, x, x, { causal: true });
  const { tall1 } = engine.info.gpu.variants;
  expect(['baseline', 'direct', 'halfDirect']).toContain(tall1.plain);
  const wanted = engine.attentionSync(x, x, x, { causal: true }).output;
  const worst = Math.max(...output.data.map((y, i) => Math.abs(y - wanted.data[i])));
  expect(worst).toBeLessThan(tall1.plain.startsWith('half') ? 2e-2 : 1e-4);
  engine.dispose();
});
