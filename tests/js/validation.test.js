// Tests: random options and shapes: always a typed error or the right result, and afterwards the engine still works.

import fc from 'fast-check';
import { createEngine } from 'headwise';
import { expectClose } from './compare.js';
import { expectWorks } from './support/known.js';
import { plainAttention } from './support/plain-attention.js';
import { randomTensor } from './support/random.js';
import { otherFloat32 } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

const codes = {
  TypeError: ['INVALID_TYPE'],
  RangeError: ['INVALID_SHAPE', 'INVALID_VALUE', 'OUT_OF_MEMORY'],
  AbortError: ['ABORTED'],
  HeadwiseError: ['UNSUPPORTED', 'DISPOSED'],
};

function expectTyped(error) {
  expect(error).toBeInstanceOf(Error);
  expect(codes[error.name]).toContain(error.code);
  expect(error.message.length).toBeGreaterThan(10);
  expect(typeof error.stack).toBe('string');
}

// A seed makes a failing case repeatable; fast-check prints it with the shrunk case.
const runs = (numRuns) => ({ numRuns, seed: 20_240_817 });

test('any valid options give what the plain formula gives', async () => {
  const size = (max) => fc.integer({ min: 1, max });
  const shapes = fc.record({
    B: size(2),
    G: size(2),
    group: size(3),
    L: size(9),
    S: size(19),
    D: size(9),
    Dv: size(9),
  });
  const perHead = (h) =>
    fc.array(fc.float({ min: -2, max: 2, noNaN: true }), { minLength: h, maxLength: h });
  const cases = shapes.chain((s) => {
    const H = s.G * s.group;
    const broadcastShape = fc
      .tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean(), fc.integer({ min: 1, max: 4 }))
      .map(([b, h, l, k, rank]) =>
        [b ? s.B : 1, h ? H : 1, l ? s.L : 1, k ? s.S : 1].slice(4 - rank),
      );
    const booleans = broadcastShape.chain((shape) => {
      const length = shape.reduce((x, y) => x * y, 1);
      return fc
        .uint8Array({ min: 0, max: 1, minLength: length, maxLength: length })
        .map((data) => ({ data, shape }));
    });
    return fc.record({
      sizes: fc.constant({ ...s, H }),
      seed: fc.nat(1000),
      options: fc.record(
        {
          scale: fc.double({ min: -2, max: 2, noNaN: true }),
          softcap: fc.double({ min: 0.5, max: 50, noNaN: true }),
          bias: fc
            .tuple(broadcastShape, fc.nat(1000))
            .map(([shape, seed]) => randomTensor(shape, seed)),
          mask: booleans,
          keyPaddingMask: fc
            .uint8Array({ min: 0, max: 1, minLength: s.B * s.S, maxLength: s.B * s.S })
            .map((data) => ({ data, shape: [s.B, s.S] })),
          kvLengths: fc.array(fc.integer({ min: 0, max: s.S }), { minLength: s.B, maxLength: s.B }),
          qLengths: fc.array(fc.integer({ min: 0, max: s.L }), { minLength: s.B, maxLength: s.B }),
          causal: fc.boolean(),
          causalOffset: fc.oneof(
            fc.integer({ min: -5, max: 25 }),
            fc.array(fc.integer({ min: -5, max: 25 }), { minLength: s.B, maxLength: s.B }),
          ),
          window: fc.tuple(fc.constantFrom(0, 1, 3, Infinity), fc.constantFrom(0, 2, Infinity)),
          alibiSlopes: perHead(H),
          sinks: perHead(H),
          returnWeights: fc.constant(true),
          returnLogSumExp: fc.constant(true),
        },
        { requiredKeys: [] },
      ),
    });
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ sizes: { B, H, G, L, S, D, Dv }, seed, options }) => {
      const q = randomTensor([B, H, L, D], seed);
      const k = randomTensor([B, G, S, D], seed + 1);
      const v = randomTensor([B, G, S, Dv], seed + 2);
      const expected = plainAttention(q, k, v, options);
      const result =
        seed % 2 === 0
          ? engine.attentionSync(q, k, v, options)
          : await engine.attention(q, k, v, options);
      expectClose(result.output, expected.output, otherFloat32, 'output');
      if (options.returnWeights)
        expectClose(result.weights, expected.weights, otherFloat32, 'weights');
      if (options.returnLogSumExp)
        expectClose(result.logSumExp, expected.logSumExp, otherFloat32, 'logSumExp');
    }),
    runs(400),
  );
});

// Anything at all, with the right names often enough to get past the first check.
const names = [
  ...[
    'layout',
    'numHeads',
    'numKvHeads',
    'scale',
    'softcap',
    'bias',
    'mask',
    'keyPaddingMask',
    'kvLengths',
    'qLengths',
  ],
  ...[
    'causal',
    'causalOffset',
    'window',
    'alibiSlopes',
    'sinks',
    'dropout',
    'returnWeights',
    'returnScores',
  ],
  ...['returnLogSumExp', 'out', 'signal', 'averageWeights', 'nonsense'],
];
const oddNumber = fc.constantFrom(
  0,
  -0,
  1,
  2,
  3,
  -1,
  0.5,
  64,
  65,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  1e300,
  NaN,
  Infinity,
  -Infinity,
);
const oddArray = fc.oneof(
  fc.array(oddNumber, { maxLength: 4 }),
  fc.array(fc.boolean(), { maxLength: 4 }),
  fc.array(fc.array(oddNumber, { maxLength: 3 }), { maxLength: 3 }),
  fc.float32Array({ maxLength: 6 }),
  fc.uint8Array({ maxLength: 6 }),
  fc.int32Array({ maxLength: 3 }),
  fc.uint16Array({ maxLength: 3 }),
);
const oddValue = fc.oneof(
  oddNumber,
  oddArray,
  fc.boolean(),
  fc.constantFrom(
    'bhld',
    'blhd',
    'raw',
    'masked',
    'softcapped',
    '',
    '3',
    null,
    undefined,
    10n,
    Symbol.iterator,
  ),
  fc.record({ data: oddArray, shape: fc.array(oddNumber, { maxLength: 5 }) }),
  fc.record({ rate: oddNumber, seed: oddNumber }, { requiredKeys: [] }),
  fc.record({ heads: oddArray }),
  fc.constant(() => 1),
  fc.constant(new Date(0)),
);
const oddOptions = fc.oneof(
  { weight: 9, arbitrary: fc.dictionary(fc.constantFrom(...names), oddValue, { maxKeys: 3 }) },
  { weight: 1, arbitrary: oddValue },
);
const smallSize = fc.constantFrom(0, 1, 2, 3, 5);
const fine = fc
  .tuple(fc.array(smallSize, { minLength: 1, maxLength: 5 }), fc.nat(100))
  .map(([shape, seed]) => randomTensor(shape, seed));
const oddTensor = fc.oneof({ weight: 4, arbitrary: fine }, { weight: 1, arbitrary: oddValue });
// Three tensors that fit each other, so that the options are what decides.
const fitting = fc
  .tuple(smallSize, smallSize, smallSize)
  .map(([l, s, d]) => [
    randomTensor([2, 2, l, d], 1),
    randomTensor([2, 1, s, d], 2),
    randomTensor([2, 1, s, d], 3),
  ]);

test('any arguments of attention give a typed error or a result without NaN', async () => {
  const cases = fc.tuple(
    fc.oneof(fitting, fc.tuple(oddTensor, oddTensor, oddTensor)),
    oddOptions,
    fc.boolean(),
  );
  let errors = 0;
  let results = 0;
  await fc.assert(
    fc.asyncProperty(cases, async ([inputs, options, sync]) => {
      try {
        const { output } = sync
          ? engine.attentionSync(...inputs, options)
          : await engine.attention(...inputs, options);
        expect(output.data).toHaveLength(output.shape.reduce((a, b) => a * b, 1));
        results++;
      } catch (error) {
        if (error.matcherResult !== undefined) throw error;
        expectTyped(error);
        errors++;
      }
    }),
    runs(3000),
  );
  // The draw must reach both sides, or it tests nothing.
  expect(errors).toBeGreaterThan(300);
  expect(results).toBeGreaterThan(300);
  await expectWorks(engine);
});

test('any configuration of a layer gives a typed error or a layer that works', async () => {
  const mostly = (...arbitraries) =>
    fc.oneof(
      { weight: 12, arbitrary: fc.oneof(...arbitraries) },
      { weight: 1, arbitrary: oddValue },
    );
  const size = mostly(fc.integer({ min: 1, max: 8 }));
  const config = fc.record(
    {
      embedDim: mostly(fc.constantFrom(2, 4, 6)),
      numHeads: mostly(fc.constantFrom(1, 2)),
      numKvHeads: mostly(fc.constantFrom(1, 2)),
      headDim: size,
      valueHeadDim: size,
      outputDim: size,
      bias: mostly(fc.boolean()),
      merge: mostly(fc.constantFrom('concat', 'sum')),
      projection: mostly(
        fc.constant('dense'),
        fc.record({
          type: fc.constant('conv'),
          kernelSize: mostly(fc.constantFrom(1, 3)),
          causal: mostly(fc.boolean()),
        }),
      ),
      score: mostly(fc.constantFrom('scaled-dot', 'dot', 'cosine', 'additive')),
      rope: mostly(
        fc.record(
          { base: oddNumber, dim: fc.constantFrom(2, 3), interleaved: fc.boolean() },
          { requiredKeys: [] },
        ),
      ),
      seed: mostly(fc.nat()),
    },
    { requiredKeys: ['embedDim', 'numHeads'] },
  );
  let layers = 0;
  let errors = 0;
  await fc.assert(
    fc.asyncProperty(config, async (drawn) => {
      let mha;
      try {
        mha = engine.multiHeadAttention(drawn);
        const { output } = await mha.forward(randomTensor([1, 3, drawn.embedDim], 1));
        expect(output.shape).toEqual([1, 3, drawn.outputDim ?? drawn.embedDim]);
        expect(output.data.every(Number.isFinite)).toBe(true);
        layers++;
      } catch (error) {
        if (error.matcherResult !== undefined) throw error;
        expectTyped(error);
        errors++;
      } finally {
        mha?.dispose();
      }
    }),
    runs(1000),
  );
  expect(layers).toBeGreaterThan(100);
  expect(errors).toBeGreaterThan(100);
  await expectWorks(engine);
});
