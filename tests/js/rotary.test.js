// Tests: rotary embeddings: positions, tables, partial sizes, layouts, and the scaling rules against their formulas.
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { plainFrequency, plainRotary } from './support/plain-rotary.js';
import { randomTensor } from './support/random.js';
import { byHand, otherFloat32 } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

const x = randomTensor([2, 3, 37, 10], 1);

test.each([
  [{}, (_b, l) => l],
  [{ offset: 1000, interleaved: true, base: 500 }, (_b, l) => l + 1000],
  [{ offset: -5, dim: 6 }, (_b, l) => l - 5],
  [{ positions: Array.from({ length: 37 }, (_, l) => 3 * l), interleaved: true }, (_b, l) => 3 * l],
  [
    { positions: [0, 100].map((p) => Array.from({ length: 37 }, (_, l) => p - l)) },
    (b, l) => 100 * b - l,
  ],
])('%j', async (options, positionOf) => {
  const before = Float32Array.from(x.data);
  const frequencyOf = plainFrequency(options.base ?? 10000, options.dim ?? 10);
  const result = await engine.rotaryEmbedding(x, options);
  expect(result.shape).toEqual(x.shape);
  expectClose(result, plainRotary(x, positionOf, frequencyOf, options), otherFloat32);
  expectSame(engine.rotaryEmbeddingSync(x, options), result);
  expectSame(x, before);
});

test('the layer takes scaling as the embedding does', async () => {
  const rope = {
    base: 50,
    dim: 4,
    scaling: { type: 'yarn', factor: 4, originalLength: 8, betaFast: 4 },
  };
  const input = randomTensor([2, 9, 6], 3);
  const one = Float32Array.from({ length: 36 }, (_, i) => Number(i % 7 === 0));
  const kernel = (shape) => ({ kernel: { data: one, shape } });
  // Nothing but attention: every projection is the identity.
  const outputWith = async (options) => {
    const layer = engine.multiHeadAttention({ embedDim: 6, numHeads: 1, rope: options });
    const [query, key, value] = new Array(3).fill(kernel([6, 1, 6]));
    await layer.setWeights({ query, key, value, output: kernel([1, 6, 6]) });
    const { output } = await layer.forward(input);
    layer.dispose();
    return output;
  };
  const heads = { data: input.data, shape: [2, 1, 9, 6] };
  const turned = await engine.rotaryEmbedding(heads, rope);
  const expected = await engine.attention(turned, turned, heads);
  const output = await outputWith(rope);
  expectClose(output, expected.output, otherFloat32);
  const unscaled = await outputWith({ ...rope, scaling: undefined });
  expect(unscaled.data.some((value, i) => Math.abs(value - output.data[i]) > 1e-3)).toBe(true);
  expect(() =>
    engine.multiHeadAttention({
      embedDim: 8,
      numHeads: 2,
      rope: { scaling: { type: 'yarn', factor: 2 } },
    }),
  ).toThrow(/^rope\.scaling\.originalLength/);
});

describe('scaling rules', () => {
  const dim = 64;
  const base = 10000;
  const long = randomTensor([1, 2, 50, dim], 2);
  const positions = Array.from({ length: 50 }, (_, l) => 177 * l);
  const plain = plainFrequency(base, dim);
  const turns = (i, length) => (length * plain(i)) / (2 * Math.PI);
  // The pair, as a real number, that makes so many turns.
  const pairOf = (count, length) =>
    (dim * Math.log(length / (count * 2 * Math.PI))) / (2 * Math.log(base));
  const yarn =
    (factor, length, fast = 32, slow = 1) =>
    (i) => {
      const from = Math.max(Math.floor(pairOf(fast, length)), 0);
      const to = Math.min(Math.ceil(pairOf(slow, length)), dim - 1);
      const ramp = Math.min(Math.max((i - from) / (to - from), 0), 1);
      return plain(i) * (ramp / factor + 1 - ramp);
    };
  const llama3 =
    (factor, length, low = 1, high = 4) =>
    (i) => {
      if (turns(i, length) < low) return plain(i) / factor;
      if (turns(i, length) > high) return plain(i);
      const smooth = (turns(i, length) - low) / (high - low);
      return (1 - smooth) * (plain(i) / factor) + smooth * plain(i);
    };
  const shortFactor = Array.from({ length: dim / 2 }, (_, i) => 1 + i / 64);
  const longFactor = Array.from({ length: dim / 2 }, (_, i) => 1.5 + i);
  test.each([
    [{ type: 'linear', factor: 4 }, (i) => plain(i) / 4, 1],
    [{ type: 'ntk', factor: 4 }, plainFrequency(base * 4 ** (dim / (dim - 2)), dim), 1],
    [{ type: 'yarn', factor: 4, originalLength: 2048 }, yarn(4, 2048), 0.1 * Math.log(4) + 1],
    [
      {
        type: 'yarn',
        factor: 8,
        originalLength: 4096,
        betaFast: 16,
        betaSlow: 2,
        attentionFactor: 1.5,
      },
      yarn(8, 4096, 16, 2),
      1.5,
    ],
    [{ type: 'llama3', factor: 8, originalLength: 2048 }, llama3(8, 2048), 1],
    [
      { type: 'llama3', factor: 8, originalLength: 2048, lowFreqFactor: 2, highFreqFactor: 9 },
      llama3(8, 2048, 2, 9),
      1,
    ],
    // The text is of 177 * 49 + 1 tokens.
    [
      { type: 'dynamic', factor: 3, originalLength: 2048 },
      plainFrequency(base * ((3 * 8674) / 2048 - 2) ** (dim / (dim - 2)), dim),
      1,
    ],
    [
      { type: 'longrope', factor: 16, originalLength: 4096, shortFactor, longFactor },
      (i) => plain(i) / longFactor[i],
      Math.sqrt(1 + Math.log(16) / Math.log(4096)),
    ],
    [
      { type: 'longrope', attentionFactor: 1.5, originalLength: 8674, shortFactor, longFactor },
      (i) => plain(i) / shortFactor[i],
      1.5,
    ],
  ])('%j', (scaling, frequencyOf, magnitude) => {
    const result = engine.rotaryEmbeddingSync(long, { positions, scaling });
    const expected = plainRotary(long, (_b, l) => 177 * l, frequencyOf, { magnitude });
    expectClose(result, expected, otherFloat32);
    // The rule does something here.
    const without = engine.rotaryEmbeddingSync(long, { positions });
    expect(result.data.some((value, i) => Math.abs(value - without.data[i]) > 0.1)).toBe(true);
  });

  test('the fastest pair keeps its frequency under ntk, and the slowest is interpolated', () => {
    const unit = { data: new Float32Array(dim).fill(1), shape: [1, dim] };
    const ntk = engine.rotaryEmbeddingSync(unit, {
      offset: 40,
      scaling: { type: 'ntk', factor: 4 },
    });
    const own = engine.rotaryEmbeddingSync(unit, { offset: 40 });
    const linear = engine.rotaryEmbeddingSync(unit, { offset: 10 });
    expectClose([ntk.data[0]], [own.data[0]], byHand);
    expectClose([ntk.data[dim / 2 - 1]], [linear.data[dim / 2 - 1]], byHand);
  });

  test.each([
    [{ factor: 2 }, TypeError, /scaling.type/],
    [{ type: 'su', factor: 2 }, RangeError, /scaling.type/],
    [{ type: 'dynamic', factor: 2 }, TypeError, /originalLength/],
    [
      { type: 'longrope', originalLength: 9, shortFactor: [1], longFactor: [1] },
      TypeError,
      /scaling.factor/,
    ],
    [
      { type: 'longrope', factor: 2, originalLength: 9, shortFactor: [1], longFactor: [1] },
      RangeError,
      /shortFactor: shape/,
    ],
    [{ type: 'linear', factor: 0 }, RangeError, /scaling.factor/],
    [{ type: 'yarn', factor: 2 }, TypeError, /originalLength/],
    [
      { type: 'llama3', factor: 2, originalLength: 9, highFreqFactor: 1 },
      RangeError,
      /highFreqFactor/,
    ],
    [{ type: 'linear', factor: 2, originalLength: 9 }, RangeError, /originalLength/],
  ])('%j is refused', async (scaling, kind, words) => {
    const error = await errorOf(() => engine.rotaryEmbedding(long, { scaling }));
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toMatch(words);
  });
});

describe('tables', () => {
  const tables = (shape) => ({ cos: randomTensor(shape, 4), sin: randomTensor(shape, 5) });
  const withTables = ({ cos, sin }, rowOf) => {
    const out = Float32Array.from(x.data);
    const half = cos.shape.at(-1);
    for (let at = 0; at < 2 * 3 * 37; at++) {
      const row = rowOf(Math.floor(at / (3 * 37)), at % 37) * half;
      for (let i = 0; i < half; i++) {
        const [a, b] = [x.data[at * 10 + i], x.data[at * 10 + i + half]];
        out[at * 10 + i] = a * cos.data[row + i] - b * sin.data[row + i];
        out[at * 10 + i + half] = a * sin.data[row + i] + b * cos.data[row + i];
      }
    }
    return out;
  };
  const positions = Array.from({ length: 37 }, (_, l) => (5 * l) % 40);
  test('by position, used as they are', () => {
    const given = tables([40, 5]);
    expectClose(
      engine.rotaryEmbeddingSync(x, { ...given, positions }),
      withTables(given, (_b, l) => positions[l]),
      byHand,
    );
    expectClose(
      engine.rotaryEmbeddingSync(x, { ...given, offset: 3 }),
      withTables(given, (_b, l) => l + 3),
      byHand,
    );
  });
  test('by row, and narrower than the head', () => {
    const given = tables([2, 37, 4]);
    expectClose(
      engine.rotaryEmbeddingSync(x, given),
      withTables(given, (b, l) => b * 37 + l),
      byHand,
    );
  });
  test.each([
    [{ ...tables([40, 5]), offset: 4 }, /positions/],
    [{ ...tables([40, 5]), base: 5 }, /base/],
    [{ ...tables([40, 6]) }, /dim/],
    [{ cos: randomTensor([40, 5], 1) }, /sin/],
    [{ ...tables([2, 37, 5]), positions }, /cos/],
    [{ ...tables([1, 37, 5]) }, /cos/],
    [{ offset: 1, positions }, /offset/],
    [{ positions: [1] }, /positions/],
  ])('what does not fit is refused: %#', async (options, words) => {
    const error = await errorOf(() => engine.rotaryEmbedding(x, options));
    expect(['INVALID_SHAPE', 'INVALID_VALUE', 'INVALID_TYPE']).toContain(error.code);
    expect(error.message).toMatch(words);
  });
});

test('layouts, ranks and out', () => {
  const plain = engine.rotaryEmbeddingSync(x);
  const last = { data: plain.data.slice(-370), shape: [37, 10] };
  const alone = engine.rotaryEmbeddingSync({ data: x.data.slice(-370), shape: [37, 10] });
  expectSame(alone, last);
  const two = randomTensor([1, 5, 12], 6); // [B,L,H·D] with H = 2
  const flat = engine.rotaryEmbeddingSync(two, { numHeads: 2 });
  const four = engine.rotaryEmbeddingSync(
    { data: two.data, shape: [1, 5, 2, 6] },
    { layout: 'blhd' },
  );
  expectSame(flat, four);
  expect(() => engine.rotaryEmbeddingSync(two)).toThrow(/numHeads/);
  const out = new Float32Array(x.data.length);
  expect(engine.rotaryEmbeddingSync(x, { out }).data).toBe(out);
  expectSame(out, plain);
});
