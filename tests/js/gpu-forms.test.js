// Tests: which form of the attention kernel a call takes: one that was right and faster on the device, and that knows its options.

import { candidates, Forms, leastFormWork } from '../../dist/webgpu/forms.js';
import { tiles } from '../../dist/webgpu/shaders/tile.js';

const { tall, flat } = tiles;
const hardware = { software: false, subgroupSize: 32, half: false };

/** A call of 16 heads, 512 × 512, 64 wide. */
const strides = [16 * 512 * 64, 512 * 64, 64];
const large = {
  batch: 1,
  heads: 16,
  kvHeads: 16,
  queries: 512,
  keys: 512,
  headDim: 64,
  valueDim: 64,
  softcap: 0,
  qStrides: strides,
  kStrides: strides,
  vStrides: strides,
  outStrides: strides,
};

/** Forms over made-up times: those without one came out wrong. */
function formsOf(times, limits = hardware) {
  const tried = [];
  const forms = new Forms(limits, async (tile, vectors, form) => {
    tried.push(`${tile.name}${vectors} ${form}`);
    return times[form];
  });
  return { forms, tried };
}

test('candidates: what the device lacks or the caller did not ask for is never tried', () => {
  expect(candidates(tall, hardware)).toEqual(['vec4', 'subgroups', 'direct']);
  expect(candidates(flat, hardware)).toEqual(['vec4', 'subgroups']);
  expect(candidates(tall, { ...hardware, subgroupSize: 0 })).toEqual(['vec4', 'direct']);
  // 4 threads share a row of a tall tile, 16 one of a flat.
  expect(candidates(tall, { ...hardware, subgroupSize: 4 })).toContain('subgroups');
  expect(candidates(flat, { ...hardware, subgroupSize: 8 })).toEqual(['vec4']);
  expect(candidates(tall, { ...hardware, half: true })).toEqual([
    'vec4',
    'subgroups',
    'direct',
    'halfVec4',
    'halfSubgroups',
    'halfDirect',
  ]);
  expect(candidates(tall, { ...hardware, software: true })).toEqual(['direct']);
  expect(candidates(flat, { ...hardware, software: true })).toEqual([]);
});

test('the fastest wins; with options, the fastest that knows them', async () => {
  const { forms, tried } = formsOf({ baseline: 10, vec4: 8, subgroups: 7, direct: 5 });
  expect(await forms.of(tall, 1, large)).toBe('direct');
  for (const option of [
    { softcap: 2 },
    { bias: {} },
    { mask: {} },
    { keyPaddingMask: {} },
    { alibiSlopes: {} },
    { dropout: {} },
  ])
    expect(await forms.of(tall, 1, { ...large, ...option })).toBe('subgroups');
  expect(tried).toEqual(['tall1 baseline', 'tall1 vec4', 'tall1 subgroups', 'tall1 direct']);
  expect(await forms.of(flat, 2, large)).toBe('subgroups');
  expect(forms.chosen).toEqual({
    tall1: { plain: 'direct', any: 'subgroups' },
    flat2: { plain: 'subgroups', any: 'subgroups' },
  });
});

test('one that is no faster, or wrong, is not used', async () => {
  const { forms } = formsOf({ baseline: 10, vec4: 9.8, direct: 12 });
  expect(await forms.of(tall, 1, large)).toBe('baseline');
  const broken = formsOf({ vec4: 1, direct: 1 });
  expect(await broken.forms.of(tall, 1, large)).toBe('baseline');
  expect(broken.tried).toEqual(['tall1 baseline']);
});

test('small calls, and sizes and strides that are no multiples of 4, take the baseline and await no trial', async () => {
  const { forms, tried } = formsOf({ baseline: 10, vec4: 1 });
  const small = { ...large, queries: 16, keys: 16 };
  expect(16 * 16 * 16 * 128).toBeLessThan(leastFormWork);
  expect(await forms.of(tall, 1, small)).toBe('baseline');
  for (const headDim of [0, 63])
    expect(await forms.of(tall, 1, { ...large, headDim })).toBe('baseline');
  expect(await forms.of(tall, 1, { ...large, valueDim: 66 })).toBe('baseline');
  for (const name of ['qStrides', 'kStrides', 'vStrides', 'outStrides'])
    expect(await forms.of(tall, 1, { ...large, [name]: [64, 64, 65] })).toBe('baseline');
  expect(tried).toEqual([]);
});

test('calls side by side await one trial; one that threw is held again', async () => {
  const { forms, tried } = formsOf({ baseline: 10, vec4: 5 });
  expect(await Promise.all([forms.of(tall, 1, large), forms.of(tall, 1, large)])).toEqual([
    'vec4',
    'vec4',
  ]);
  expect(tried.filter((name) => name === 'tall1 baseline')).toHaveLength(1);
  let fails = true;
  const shaky = new Forms(hardware, async (tile, vectors, form) => {
    if (fails) throw new Error('not now');
    return form === 'direct' ? 1 : 2;
  });
  await expect(shaky.of(tall, 1, large)).rejects.toThrow('not now');
  fails = false;
  expect(await shaky.of(tall, 1, large)).toBe('direct');
});
