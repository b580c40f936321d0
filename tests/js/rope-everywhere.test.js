// Tests: rope in caches, layers and Transformers: tables of one's own and the rules that go by a text's length, each against plain
// formulas; what is kept of what was given.
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { plainAttention } from './support/plain-attention.js';
import { plainFrequency, plainRotary } from './support/plain-rotary.js';
import { randomTensor } from './support/random.js';
import { decoderOnly, shaken } from './support/transformer.js';
import { cached, decoded, otherFloat32, otherTraining } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

const base = 50;
const dim = 6;
const D = 8;
const [shortFactor, longFactor] = [
  [1, 1.25, 2],
  [1, 3, 7],
];

/** Each rule's frequencies in a text of n tokens. */
const rules = [
  [
    { type: 'dynamic', factor: 2.5, originalLength: 6 },
    (n) => plainFrequency(base * ((2.5 * Math.max(n, 6)) / 6 - 1.5) ** (dim / (dim - 2)), dim),
    1,
  ],
  [
    { type: 'longrope', factor: 9, originalLength: 6, shortFactor, longFactor },
    (n) => (i) => plainFrequency(base, dim)(i) / (n > 6 ? longFactor : shortFactor)[i],
    Math.sqrt(1 + Math.log(9) / Math.log(6)),
  ],
  [{ type: 'linear', factor: 3 }, () => (i) => plainFrequency(base, dim)(i) / 3, 1],
];
const turned = (x, positionOf, frequencyOf, magnitude) => ({
  data: plainRotary(x, positionOf, frequencyOf, { dim, magnitude }),
  shape: x.shape,
});

const part = ({ data, shape: [b, h, l, d] }, from, to) => {
  const out = [];
  for (let head = 0; head < b * h; head++)
    out.push(...data.subarray((head * l + from) * d, (head * l + to) * d));
  return { data: Float32Array.from(out), shape: [b, h, to - from, d] };
};
const joined = (a, b) => ({
  data: Float32Array.from([...a.data, ...b.data]), // one head
  shape: [1, 1, a.shape[2] + b.shape[2], a.shape[3]],
});

const none = { data: new Float32Array(0), shape: [1, 1, 0, D] };

describe.each(rules)('%j', (scaling, frequencyIn, magnitude) => {
  const rope = { base, dim, scaling };

  test('in a cache: keys keep the frequencies of their call', () => {
    const [q, k, v] = [1, 2, 3].map((seed) => randomTensor([1, 1, 12, D], seed));
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: D, capacity: 12, rope });
    let keys = none;
    let at = 0;
    for (const count of [4, 1, 3, 4]) {
      const end = at + count;
      const start = at;
      const turn = (x) =>
        turned(part(x, start, end), (_, l) => start + l, frequencyIn(end), magnitude);
      keys = joined(keys, turn(k));
      const step = [q, k, v].map((x) => part(x, start, end));
      const expected = plainAttention(turn(q), keys, part(v, 0, end), { causal: true });
      expectClose(cache.attendSync(...step).output, expected.output, cached);
      at = end;
    }
    cache.dispose();
  });

  test('a row of a batch is turned by its own length', () => {
    const [q, k, v] = [1, 2, 3].map((seed) => randomTensor([2, 1, 9, D], seed));
    const lengths = [9, 4];
    const cache = engine.createKVCache({ batch: 2, numKvHeads: 1, headDim: D, capacity: 9, rope });
    const { output } = cache.attendSync(q, k, v, { lengths });
    lengths.forEach((length, b) => {
      const row = ({ data }) =>
        part({ data: data.subarray(b * 9 * D, (b + 1) * 9 * D), shape: [1, 1, 9, D] }, 0, length);
      const alone = engine.createKVCache({ numKvHeads: 1, headDim: D, capacity: 9, rope });
      expectClose(
        output.data.slice(b * 9 * D, b * 9 * D + length * D),
        alone.attendSync(row(q), row(k), row(v)).output,
        cached,
      );
      alone.dispose();
    });
    cache.dispose();
  });

  test('in a layer: one length for queries and keys', async () => {
    const identity = Float32Array.from({ length: D * D }, (_, i) => Number(i % (D + 1) === 0));
    const layer = engine.multiHeadAttention({ embedDim: D, numHeads: 1, rope });
    const kernel = { kernel: { data: identity, shape: [D, 1, D] } };
    const output = { kernel: { data: identity, shape: [1, D, D] } };
    await layer.setWeights({ query: kernel, key: kernel, value: kernel, output });
    for (const [rows, keys, kvLengths] of [
      [9, 9, [9, 5]],
      [2, 9, [9, 7]],
    ]) {
      const query = randomTensor([2, rows, D], 4);
      const key = randomTensor([2, keys, D], 5);
      const result = await layer.forward(query, key, key, { kvLengths });
      for (const [b, length] of kvLengths.entries()) {
        const row = ({ data }, l) => ({
          data: data.subarray(b * l * D, (b + 1) * l * D),
          shape: [1, 1, l, D],
        });
        const turn = (x, first) => turned(x, (_, l) => first + l, frequencyIn(length), magnitude);
        const [q, k] = [turn(row(query, rows), length - rows), turn(row(key, keys), 0)];
        const expected = plainAttention(q, k, row(key, keys), { kvLengths: [length] });
        expectClose(
          result.output.data.slice(b * rows * D, (b + 1) * rows * D),
          expected.output,
          otherFloat32,
        );
      }
    }
    layer.dispose();
  });

  test('in a Transformer: it reads, decodes and is saved with it', async () => {
    const config = {
      ...decoderOnly,
      numHeads: 2,
      numKvHeads: 2,
      positions: 'rotary',
      maxLength: 12,
    };
    const size = config.embedDim / 2;
    const fit = (list) => Array.from({ length: size / 2 }, (_, i) => list[i % list.length]);
    const own =
      scaling.type === 'longrope'
        ? {
            ...scaling,
            shortFactor: Float32Array.from(fit(shortFactor)),
            longFactor: fit(longFactor),
          }
        : scaling;
    const model = await shaken(engine, { ...config, rope: { base, scaling: own } });
    const target = [0, 3, 1, 2, 5, 1, 4, 2, 6];
    const whole = await model.forward({ target: [target] });
    // A prompt at once is one text.
    const decoding = model.decoding();
    const last = whole.data.slice((target.length - 1) * 7);
    expectClose(await decoding.read([target]), last, decoded);
    decoding.dispose();
    const saved = await model.save();
    const other = await shaken(engine, { ...config, rope: { base, scaling: own } });
    await other.load(saved);
    expectSame((await other.forward({ target: [target] })).data, whole.data);
    const without = await shaken(engine, { ...config, rope: { base } });
    expect((await errorOf(() => without.load(saved))).message).toMatch(/^checkpoint: rope.scaling/);
    for (const each of [model, other, without]) each.dispose();
  });
});

describe('tables', () => {
  const rows = 12;
  const [cos, sin] = [1, 2].map((seed) => randomTensor([rows, dim / 2], seed));
  const byTables = (x, positionOf) => {
    const out = Float32Array.from(x.data);
    const [b, h, l] = x.shape;
    for (let n = 0; n < b * h * l; n++) {
      const p = positionOf(n % l);
      for (let i = 0; i < dim / 2; i++) {
        const [x0, x1] = [x.data[n * D + i], x.data[n * D + i + dim / 2]];
        const [c, s] = [cos.data[p * (dim / 2) + i], sin.data[p * (dim / 2) + i]];
        out[n * D + i] = x0 * c - x1 * s;
        out[n * D + i + dim / 2] = x0 * s + x1 * c;
      }
    }
    return { data: out, shape: x.shape };
  };

  test('in a cache, which keeps its own copies, and so does a fork', async () => {
    const passing = {
      cos: { ...cos, data: cos.data.slice() },
      sin: { ...sin, data: sin.data.slice() },
    };
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: D, capacity: 20, rope: passing });
    passing.cos.data.fill(9);
    passing.sin.data.fill(9);
    const [q, k, v] = [1, 2, 3].map((seed) => randomTensor([1, 1, 7, D], seed));
    const expected = plainAttention(
      byTables(q, (l) => l),
      byTables(k, (l) => l),
      v,
      { causal: true },
    );
    const fork = cache.fork();
    cache.dispose();
    expectClose(fork.attendSync(q, k, v).output, expected.output, cached);
    // Rows that do not count may be past the tables; those that do may not.
    await fork.append(k, v, { lengths: [5] });
    for (const [call, words] of [
      [() => fork.append(part(k, 0, 1), part(v, 0, 1)), /^positions: .*0 … 11 wanted/],
      [
        () => fork.append(part(k, 0, 1), part(v, 0, 1), { positions: [12] }),
        /^positions: .*got 12/,
      ],
      [
        () => fork.append(part(k, 0, 1), part(v, 0, 1), { positions: [-1] }),
        /^positions: .*got -1/,
      ],
    ]) {
      const error = await errorOf(call);
      expect(error.code).toBe('INVALID_VALUE');
      expect(error.message).toMatch(words);
      expect(fork.lengths).toEqual([12]);
    }
    await fork.append(part(k, 0, 1), part(v, 0, 1), { positions: [3] });
    fork.dispose();
  });

  test('in a layer', async () => {
    const identity = Float32Array.from({ length: D * D }, (_, i) => Number(i % (D + 1) === 0));
    const layer = engine.multiHeadAttention({ embedDim: D, numHeads: 1, rope: { cos, sin } });
    const kernel = { kernel: { data: identity, shape: [D, 1, D] } };
    const output = { kernel: { data: identity, shape: [1, D, D] } };
    await layer.setWeights({ query: kernel, key: kernel, value: kernel, output });
    const x = randomTensor([1, 9, D], 4);
    const heads = { data: x.data, shape: [1, 1, 9, D] };
    const t = byTables(heads, (l) => l);
    expectClose((await layer.forward(x)).output, plainAttention(t, t, heads).output, otherFloat32);
    const long = randomTensor([1, 13, D], 5);
    expect((await errorOf(() => layer.forward(long))).code).toBe('INVALID_VALUE');
    expectClose((await layer.forward(x)).output, plainAttention(t, t, heads).output, otherFloat32);
    layer.dispose();
  });

  test('in a Transformer: as the rule that they hold', async () => {
    const size = decoderOnly.embedDim / 2;
    const angles = Array.from({ length: 12 }, (_, p) =>
      Array.from({ length: size / 2 }, (__, i) => p * base ** ((-2 * i) / size)),
    );
    const table = (f) => angles.map((row) => row.map(f));
    const config = { ...decoderOnly, numHeads: 2, numKvHeads: 2, positions: 'rotary' };
    const tables = { cos: table(Math.cos), sin: table(Math.sin) };
    const model = await shaken(engine, { ...config, maxLength: undefined, rope: tables });
    expect(model.config.maxLength).toBe(12);
    const plain = await shaken(engine, { ...config, maxLength: 12, rope: { base } });
    const target = [[0, 3, 1, 2, 5, 1, 4, 2, 6]];
    const [own, wanted] = await Promise.all([model, plain].map((m) => m.forward({ target })));
    expectClose(own, wanted, decoded);
    // Gradients go back by the same tables: after a step they still agree.
    const labels = [[3, 1, 2, 5, 1, 4, 2, 6, 0]];
    await Promise.all(
      [model, plain].map((m) =>
        m.trainStep({ target, labels }, { learningRate: 0.5, optimizer: 'sgd' }),
      ),
    );
    const [after, afterwards] = await Promise.all([model, plain].map((m) => m.forward({ target })));
    expectClose(after, afterwards, otherTraining);
    expect(after.data.some((x, i) => Math.abs(x - own.data[i]) > 1e-2)).toBe(true);
    const saved = await model.save();
    const same = await shaken(engine, { ...config, maxLength: 12, rope: tables });
    await same.load(saved);
    expectSame((await same.forward({ target })).data, after.data);
    expect((await errorOf(() => plain.load(saved))).message).toMatch(/^checkpoint: rope\./);
    for (const each of [model, plain, same]) each.dispose();
  });

  test.each([
    [{ cos }, /^rope.sin: wanted with the other table/],
    [{ cos, sin, base: 5 }, /^rope.base: not together/],
    [{ cos, sin, dim: 4 }, /^rope.cos: a width of dim \/ 2/],
    [{ cos, sin: { data: sin.data, shape: [dim / 2, rows] } }, /^rope.sin: shape/],
    [{ cos: cos.data, sin: sin.data }, /^rope.cos: \[P,dim\/2\] wanted/],
    [{ scaling: { type: 'dynamic', factor: 2 } }, /^rope.scaling.originalLength/],
    [
      { scaling: { type: 'longrope', originalLength: 4, shortFactor, longFactor } },
      /^rope.scaling.factor/,
    ],
    [
      { scaling: { type: 'longrope', factor: 2, originalLength: 4, shortFactor, longFactor: [1] } },
      /^rope.scaling.longFactor/,
    ],
    [
      {
        dim: 6,
        scaling: {
          type: 'longrope',
          factor: 2,
          originalLength: 4,
          shortFactor,
          longFactor: [1, 0, 1],
        },
      },
      /longFactor\[1\]/,
    ],
    [{ scaling: { type: 'dynamic', factor: 2, originalLength: 4, shortFactor } }, /shortFactor/],
  ])('cache, layer and Transformer refuse %#', (rope, words) => {
    const shape = { embedDim: 8, numHeads: 1 };
    const wide = JSON.stringify(rope).includes('shortFactor') && rope.dim === undefined;
    const given = wide ? { dim: 6, ...rope } : rope;
    for (const make of [
      () => engine.createKVCache({ numKvHeads: 1, headDim: 8, capacity: 4, rope: given }),
      () => engine.multiHeadAttention({ ...shape, rope: given }),
      () =>
        engine.transformer({
          ...shape,
          kind: 'decoder',
          targetVocabulary: 3,
          positions: 'rotary',
          rope: given,
        }),
    ])
      expect(make).toThrow(words);
  });

  test('too few rows for maxLength are refused', () => {
    const make = () =>
      engine.transformer({
        ...{ kind: 'decoder', embedDim: 8, numHeads: 1, targetVocabulary: 3 },
        ...{ positions: 'rotary', maxLength: 13, rope: { cos, sin } },
      });
    expect(make).toThrow(/^rope.cos: at least maxLength = 13 rows wanted, got 12/);
  });
});
