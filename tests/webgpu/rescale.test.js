// Tests: scores that grow along the keys, so that every tile and every split of keys has a new maximum, by which each form of the
// attention kernel must rescale what it has summed (D7). Judged by a plain softmax in double.

import { readAttention } from '../../dist/validation/attention.js';
import { Buffers } from '../../dist/webgpu/buffers.js';
import { Pipelines } from '../../dist/webgpu/pipelines.js';
import { planAttention } from '../../dist/webgpu/plan.js';
import { lanesOf } from '../../dist/webgpu/shaders/attention.js';
import { tileKeys, tiles } from '../../dist/webgpu/shaders/tile.js';
import { runForm } from '../../dist/webgpu/trial.js';
import { expectClose } from '../js/compare.js';
import { randomTensor } from '../js/support/random.js';

// Float32 sums of inputs of unit scale; scores up to 140 are off by 3e-5.
const tolerance = { absolute: 2e-4, relative: 1e-5 };

const limits = { bindingBytes: 2 ** 27, workgroups: 65535, dispatchWork: 2 ** 21 };
const adapter = await globalThis.navigator.gpu.requestAdapter();
const { subgroupMinSize = 0 } = adapter.info;
const hasSubgroups = adapter.features.has('subgroups');
const device = await adapter.requestDevice({ requiredFeatures: hasSubgroups ? ['subgroups'] : [] });
const ground = { device, pipelines: new Pipelines(device), limits };
const buffers = new Buffers(device, limits.bindingBytes);
afterAll(() => {
  buffers.dispose();
  device.destroy();
});

const D = 8;

/** Row i's score of key j is (1 + i / 2L) · growth · j / tile, but for rounding. */
function growing(L, S, Dv, growth) {
  const tensor = (rows, size, make) => ({
    data: Float32Array.from({ length: rows * size }, (_, n) => make(Math.floor(n / size))),
    shape: [rows, size],
  });
  return [
    tensor(L, D, (i) => (1 + i / (2 * L)) / D),
    tensor(S, D, (j) => (growth * j) / tileKeys),
    randomTensor([S, Dv], 3),
  ];
}

/** Σ softmax(q·k)·v, row by row, in double. */
function plainly(q, k, v) {
  const [L, S, Dv] = [q.shape[0], k.shape[0], v.shape[1]];
  const output = new Float64Array(L * Dv);
  for (let i = 0; i < L; i++) {
    const scores = Array.from({ length: S }, (_, j) => {
      let score = 0;
      for (let d = 0; d < D; d++) score += q.data[i * D + d] * k.data[j * D + d];
      return score;
    });
    const top = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - top));
    const sum = weights.reduce((a, b) => a + b, 0);
    for (let j = 0; j < S; j++) {
      for (let c = 0; c < Dv; c++) output[i * Dv + c] += (weights[j] / sum) * v.data[j * Dv + c];
    }
  }
  return output;
}

/** Many rows and few; one split of four tiles, and two splits of several. */
describe.each([
  ['tall', 19, 12, ['baseline', 'vec4', 'subgroups', 'direct']],
  ['tall', 19, 72, ['baseline', 'direct']],
  ['flat', 1, 12, ['baseline', 'vec4', 'subgroups']],
  ['flat', 3, 72, ['baseline']],
])('%s tile, %i rows, Dv %i', (name, L, Dv, forms) => {
  for (const form of forms) {
    const lanes = lanesOf(tiles[name]);
    const lacks = form === 'subgroups' && !(hasSubgroups && subgroupMinSize >= lanes);
    (lacks ? test.skip : test).each([
      [200, 1, 2],
      [200, 1, 20],
      [300, 2, 2],
      [300, 2, 20],
    ])(`${form}, %i keys in %i splits, scores grow by %i a tile`, async (S, splits, growth) => {
      const [q, k, v] = growing(L, S, Dv, growth);
      const { request } = readAttention(q, k, v, { scale: 1 });
      const plan = planAttention(request, limits);
      expect([plan.tile, plan.splits]).toEqual([tiles[name], splits]);
      const { output } = await runForm(ground, buffers, form, request, 1);
      expectClose(output, plainly(q, k, v), tolerance);
    });
  }
});
