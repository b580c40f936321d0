// Tests: attention in pieces, for devices that cannot see the whole: each piece fits, they cover everything once, and what they
// give, joined, is what one call gives. The core computes here; the GPU's own tests let it compute.

import fc from 'fast-check';
import { readAttention } from '../../dist/validation/attention.js';
import { LocalHost } from '../../dist/wasm/host.js';
import { Assembly, pieceRequest } from '../../dist/webgpu/pieces.js';
import { count } from '../../dist/options/cut.js';
import { splitAttention, whyNotSplit } from '../../dist/webgpu/split.js';
import { expectClose } from './compare.js';
import { randomSource, randomTensor } from './support/random.js';
import { otherFloat32 } from './tolerances.js';

let core;
beforeAll(async () => {
  core = await LocalHost.start({ threads: 1, variant: 'auto', maxMemoryBytes: 2 ** 28 });
});
afterAll(() => core.dispose());

const sizes = fc
  .record({
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 4 }),
    queries: fc.constantFrom(1, 5, 64, 300),
    keys: fc.constantFrom(1, 7, 64, 700),
    headDim: fc.constantFrom(0, 1, 8, 64),
    valueDim: fc.constantFrom(1, 8, 64),
    scoreStage: fc.constantFrom(0, 3),
  })
  .map(({ group, ...rest }) => ({ ...rest, heads: rest.kvHeads * group }));

test('pieces cover every score once and fit', () => {
  fc.assert(
    fc.property(sizes, fc.constantFrom(2 ** 14, 2 ** 17, 2 ** 20), (s, limit) => {
      const pieces = splitAttention(s, limit);
      expect(Array.isArray(pieces)).toBe(true);
      let scores = 0;
      const group = s.heads / s.kvHeads;
      for (const { batches, heads, queries, keys } of pieces) {
        const [nb, nh, nq, nk] = [batches, heads, queries, keys].map(count);
        scores += nb * nh * nq * nk;
        const whole = heads.first % group === 0 && heads.end % group === 0;
        expect(
          whole || Math.floor(heads.first / group) === Math.floor((heads.end - 1) / group),
        ).toBe(true);
        const groups = whole ? nh / group : 1;
        const rows = nb * nh * nq;
        const arrays = [
          rows * s.headDim,
          rows * s.valueDim,
          rows * 3,
          nb * groups * nk * s.headDim,
        ];
        if (s.scoreStage > 0) arrays.push(rows * nk);
        expect(Math.max(...arrays) * 4).toBeLessThanOrEqual(limit);
      }
      expect(scores).toBe(s.batch * s.heads * s.queries * s.keys);
    }),
    { seed: 1, numRuns: 60 },
  );
});

test('what fits is one piece; what cannot be made to fit is named', () => {
  const s = { batch: 1, heads: 2, kvHeads: 2, queries: 8, keys: 8, headDim: 4, valueDim: 4 };
  const request = { ...s, scoreStage: 0 };
  expect(splitAttention(request, 4096)).toHaveLength(1);
  const wide = { ...request, headDim: 2000 };
  expect(splitAttention(wide, 4096)).toMatchObject({ name: 'q', bytes: 8000 });
  expect(whyNotSplit(wide, { bindingBytes: 4096 })).toMatchObject({ bytes: 8000 });
  const dropping = { ...request, dropout: { rate: 0.5, seed: [1, 2] } };
  expect(whyNotSplit(dropping, { bindingBytes: 256 }).reason).toMatch(/dropout/);
});

const flags = (length, next) => Uint8Array.from({ length }, () => (next() < 0.7 ? 1 : 0));

function randomCase(seed) {
  const next = randomSource(seed * 7919 + 3);
  const pick = (...list) => list[Math.floor(next() * list.length)];
  const chance = (p, make) => (next() < p ? make() : {});
  const [B, G] = [pick(1, 2, 3), pick(1, 2, 3)];
  const H = G * pick(1, 2, 3);
  const [L, S, D, Dv] = [pick(1, 2, 17, 40), pick(1, 16, 65, 200), pick(1, 8, 17), pick(1, 7, 16)];
  const blhd = next() < 0.5;
  const shape = (heads, rows, size) => (blhd ? [B, rows, heads, size] : [B, heads, rows, size]);
  const lengths = (most) => Array.from({ length: B }, () => Math.floor(next() * (most + 1)));
  const target = [pick(1, B), pick(1, H), pick(1, L), pick(1, S)].slice(pick(0, 0, 1, 2));
  const size = target.reduce((a, b) => a * b, 1);
  return [
    randomTensor(shape(H, L, D), seed),
    randomTensor(shape(G, S, D), seed + 1),
    randomTensor(shape(G, S, Dv), seed + 2),
    {
      ...(blhd && { layout: 'blhd' }),
      ...chance(0.2, () => ({ softcap: 0.5 + next() })),
      ...chance(0.4, () => ({ bias: randomTensor(target, seed) })),
      ...chance(0.4, () => ({ mask: { data: flags(size, next), shape: target } })),
      ...chance(0.3, () => ({ keyPaddingMask: { data: flags(B * S, next), shape: [B, S] } })),
      ...chance(0.3, () => ({ kvLengths: lengths(S) })),
      ...chance(0.3, () => ({ qLengths: lengths(L) })),
      ...chance(0.5, () => ({ causal: true })),
      ...chance(0.3, () => ({ causalOffset: pick(0, -3, 5, 1000, -1000) })),
      ...chance(0.3, () => ({ window: [pick(0, 2, 30, Infinity), pick(0, 1, 9, Infinity)] })),
      ...chance(0.3, () => ({ alibiSlopes: randomTensor([H], seed).data })),
      ...chance(0.4, () => ({ sinks: randomTensor([H], seed + 1).data })),
      ...chance(0.4, () => ({ returnWeights: pick(true, { heads: H > 1 ? [H - 1, 0] : [0] }) })),
      ...chance(0.3, () => ({ returnScores: pick('raw', 'softcapped', 'masked') })),
      ...chance(0.5, () => ({ returnLogSumExp: true })),
    },
  ];
}

test('pieces, joined, are the whole', () => {
  let pieceCount = 0;
  let keyRanges = 0;
  for (let seed = 0; seed < 60; seed++) {
    const { request } = readAttention(...randomCase(seed));
    const whole = core.runSync(request);
    const pieces = splitAttention(request, [600, 900, 2500][seed % 3]);
    const several = pieces.some(({ keys }) => count(keys) < request.keys);
    const assembly = new Assembly(request, several);
    for (const piece of pieces)
      assembly.add(piece, core.runSync(pieceRequest(request, piece, several)));
    const { response } = assembly;
    expect(Object.keys(response).sort()).toEqual(Object.keys(whole).sort());
    for (const name of Object.keys(whole))
      expectClose(response[name], whole[name], otherFloat32, `seed ${seed}, ${name}`);
    pieceCount += pieces.length;
    keyRanges += several ? 1 : 0;
  }
  expect(pieceCount).toBeGreaterThan(500);
  expect(keyRanges).toBeGreaterThan(10);
});
