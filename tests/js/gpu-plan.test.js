// Tests: the GPU's plan: every piece of work is done once, and no limit of the device is exceeded, whatever the sizes.

import fc from 'fast-check';
import {
  planAttention,
  planDispatches,
  planHalf,
  planLinear,
  planMatrix,
} from '../../dist/webgpu/plan.js';
import { paramsBytes, writeParams } from '../../dist/webgpu/shaders/params.js';
import { kinds } from '../../dist/webgpu/pipelines.js';
import { directTile } from '../../dist/webgpu/shaders/direct.js';
import { tileKeys, tileRows, tiles } from '../../dist/webgpu/shaders/tile.js';
import { sizeClass } from '../../dist/webgpu/buffers.js';

const limits = { bindingBytes: 2 ** 27, workgroups: 65535, dispatchWork: 1e9 };

const sizes = fc
  .record({
    batch: fc.integer({ min: 1, max: 5 }),
    kvHeads: fc.constantFrom(1, 2, 65537),
    group: fc.constantFrom(1, 3, 8),
    queries: fc.constantFrom(1, 2, 7, 31, 32, 33, 1000, 70000),
    keys: fc.constantFrom(1, 2, 63, 64, 65, 255, 257, 5000, 262145),
    headDim: fc.constantFrom(0, 1, 3, 64, 129),
    valueDim: fc.constantFrom(1, 63, 64, 65, 128, 300),
  })
  .map(({ group, ...rest }) => ({ ...rest, heads: rest.kvHeads * group }))
  // What fits a GPU at all: the plan's size grows with the work.
  .filter((s) => s.batch * s.heads * s.queries * s.keys * (s.headDim + s.valueDim) < 2e10);

const devices = fc.constantFrom(
  limits,
  { ...limits, dispatchWork: 2.5e7 },
  { bindingBytes: 2 ** 24, workgroups: 255, dispatchWork: 5e6 },
);

function expectCovers(dispatches, first, end, { workgroups }) {
  let at = first;
  for (const dispatch of dispatches) {
    if (dispatch.first !== at) throw new Error(`a gap or overlap at ${at}`);
    const { x, y } = dispatch;
    if (x < 1 || y < 1 || x > workgroups || y > workgroups)
      throw new Error(`a grid of ${x} × ${y}`);
    if (x * y < dispatch.end - dispatch.first) throw new Error(`too small a grid at ${at}`);
    at = dispatch.end;
  }
  expect(at).toBe(end);
}

test('attention: every row, key and column once, within the limits', () => {
  fc.assert(
    fc.property(sizes, devices, (s, device) => {
      const plan = planAttention(s, device);
      const rows = tileRows(plan.tile);
      expect(plan.rowTiles * rows).toBeGreaterThanOrEqual((s.heads / s.kvHeads) * s.queries);
      expect((plan.rowTiles - 1) * rows).toBeLessThan((s.heads / s.kvHeads) * s.queries);
      expect(plan.columnChunks * 64 * plan.vectors).toBeGreaterThanOrEqual(s.valueDim);
      expect(plan.splitKeys % tileKeys).toBe(0);
      expect(plan.splits * plan.splitKeys).toBeGreaterThanOrEqual(s.keys);
      expect((plan.splits - 1) * plan.splitKeys).toBeLessThan(s.keys);
      const perUnit = plan.columnChunks * plan.splits;
      let unit = 0;
      for (const pass of plan.passes) {
        expect(pass.firstUnit).toBe(unit);
        unit += pass.units;
        expectCovers(pass.dispatches, pass.firstUnit * perUnit, unit * perUnit, device);
        expectCovers(pass.merges, 0, plan.splits > 1 ? pass.units * rows : 0, device);
        if (pass.units > 1) {
          expect(plan.sumFloats * 4).toBeLessThanOrEqual(device.bindingBytes);
          expect(plan.partFloats * 4).toBeLessThanOrEqual(device.bindingBytes);
        }
      }
      expect(unit).toBe(s.batch * s.kvHeads * plan.rowTiles);
    }),
    { seed: 1, numRuns: 60 },
  );
});

test('a dispatch holds no more work than it may, unless one workgroup does', () => {
  const dispatches = planDispatches(0, 1000, 1e8, limits);
  expect(dispatches).toHaveLength(100);
  expect(Math.max(...dispatches.map(({ work }) => work))).toBe(1e9);
  expectCovers(planDispatches(5, 17, 1e12, limits), 5, 17, limits);
  expectCovers(planDispatches(0, 70000, 1, limits), 0, 70000, limits);
});

test('few rows and many keys are split, many rows are not', () => {
  const decode = {
    batch: 1,
    heads: 8,
    kvHeads: 8,
    queries: 1,
    keys: 4096,
    headDim: 64,
    valueDim: 64,
  };
  expect(planAttention(decode, limits).splits).toBeGreaterThan(8);
  expect(planAttention({ ...decode, queries: 4096 }, limits).splits).toBe(1);
  expect(planAttention(decode, limits)).toEqual(planAttention(decode, limits));
});

test('matrices and products', () => {
  const s = { batch: 2, heads: 3, kvHeads: 3, queries: 33, keys: 65, headDim: 4, valueDim: 4 };
  expectCovers(planMatrix(s, 2, limits), 0, 2 * 2 * 2 * 2, limits);
  expectCovers(planLinear(33, 7, 65, limits), 0, 4, limits);
  expect(planLinear(0, 7, 65, limits)).toEqual([]);
});

test('halves: every vector once', () => {
  expectCovers(planHalf(1, limits), 0, 1, limits);
  expectCovers(planHalf(64 * 70000, limits), 0, 70000, limits);
});

test('every kernel keeps to what each device has: 16 KiB of workgroup memory, 256 threads, 8 storage buffers', () => {
  const sizeOf = { vec4f: 16, f32: 4, u32: 4, 'atomic<u32>': 4 };
  const used = {};
  for (const [name, { text, bindings }] of Object.entries(kinds)) {
    const code = text();
    let bytes = 0;
    for (const [, type] of code.matchAll(/var<workgroup> \w+: ([^;]+);/g)) {
      const [, element = type, count = 1] = /^array<(\w+), (\d+)>$/.exec(type) ?? [];
      expect(sizeOf).toHaveProperty([element]);
      bytes += Math.ceil((sizeOf[element] * Number(count)) / 16) * 16;
    }
    const [, x, y = 1] = /@workgroup_size\((\d+)(?:, (\d+))?\)/.exec(code);
    const buffers = Object.values(bindings).filter((kind) => kind !== 'uniform').length;
    expect([name, bytes <= 16384, x * y <= 256, buffers <= 8]).toEqual([name, true, true, true]);
    used[name] = bytes;
  }
  // The direct form has neither keys nor values there.
  expect(used.directTall1).toBeLessThan(used.attentionTall1);
  // Tiles of all forms have as many rows, so that one plan, and one merge, serves them.
  expect(tileRows(directTile(tiles.tall))).toBe(tileRows(tiles.tall));
});

test('params fit their place, signs included', () => {
  const memory = new ArrayBuffer(2 * paramsBytes);
  writeParams(memory, paramsBytes / 4, { batch: 7, window_left: -1, scale: 0.5 });
  const words = new Uint32Array(memory);
  expect(words[paramsBytes / 4]).toBe(7);
  expect([...words].filter((word) => word === 0xffffffff)).toHaveLength(1);
  expect([...words.slice(0, paramsBytes / 4)].every((word) => word === 0)).toBe(true);
});

test('size classes: few, never too small, never above the most', () => {
  const classes = new Set();
  for (let bytes = 1; bytes < 2e6; bytes += 997) {
    const size = sizeClass(bytes, 2e9);
    expect(size).toBeGreaterThanOrEqual(bytes);
    expect(size % 4).toBe(0);
    expect(size).toBeLessThan(Math.max(257, bytes * 1.51));
    classes.add(size);
  }
  expect(classes.size).toBeLessThan(30);
  expect(sizeClass(1000, 1000)).toBe(1000);
});
