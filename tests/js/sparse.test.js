// Tests: packed sequences, masks of bits and block-sparse masks: each the same as plain attention said another way.
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { randomSource, randomTensor } from './support/random.js';
import { cached } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

describe('packed sequences', () => {
  const slice = ({ data, shape: [, h, l, d] }, first, last) => {
    const out = [];
    for (let head = 0; head < h; head++)
      out.push(...data.subarray((head * l + first) * d, (head * l + last) * d));
    return { data: Float32Array.from(out), shape: [1, h, last - first, d] };
  };
  const cases = [
    ['ragged', [0, 70, 71, 71, 200, 203], [0, 70, 100, 105, 300, 300]],
    ['short, unpacked keys', [0, 1, 2, 4], [0, 40, 41, 290]],
    ['none', [0], [0]],
    ['one', [0, 33], [0, 20]],
  ];
  describe.each(cases)('%s', (_name, cuSeqlensQ, cuSeqlensK) => {
    test.each([
      {},
      { causal: true },
      { causal: true, window: [20, 0], softcap: 3, sinks: [0.1, 0.2, 0.3, 0.4] },
      { alibiSlopes: [0.1, 0.2, 0.3, 0.4], causalOffset: 2, window: [9, 9] },
    ])('%j', async (options) => {
      const [T, S] = [cuSeqlensQ.at(-1), cuSeqlensK.at(-1)];
      const [q, k, v] = [
        [1, 4, T, 8],
        [1, 2, S, 8],
        [1, 2, S, 6],
      ].map(randomTensor);
      const all = { ...options, returnLogSumExp: true };
      const packed = await engine.attention(q, k, v, { ...all, cuSeqlensQ, cuSeqlensK });
      expect(packed.output.shape).toEqual([1, 4, T, 6]);
      expect(packed.logSumExp.shape).toEqual([1, 4, T]);
      for (let n = 0; n + 1 < cuSeqlensQ.length; n++) {
        const [q0, q1, k0, k1] = [
          cuSeqlensQ[n],
          cuSeqlensQ[n + 1],
          cuSeqlensK[n],
          cuSeqlensK[n + 1],
        ];
        const own = engine.attentionSync(slice(q, q0, q1), slice(k, k0, k1), slice(v, k0, k1), all);
        expectClose(slice(packed.output, q0, q1), own.output, cached, `sequence ${n}`);
        const lse = { data: packed.logSumExp.data, shape: [1, 4, T, 1] };
        expectClose(slice(lse, q0, q1), own.logSumExp, cached, `log-sum-exp ${n}`);
      }
    });

    test.each([
      {},
      { causal: true, softcap: 3, sinks: [0.1, 0.2, 0.3, 0.4] },
      { alibiSlopes: [0.1, 0.2, 0.3, 0.4], causalOffset: 2, window: [9, 9] },
    ])('gradients with %j', async (options) => {
      const [T, S] = [cuSeqlensQ.at(-1), cuSeqlensK.at(-1)];
      const [q, k, v, dOutput] = [
        [1, 4, T, 8],
        [1, 2, S, 8],
        [1, 2, S, 6],
        [1, 4, T, 6],
      ].map(randomTensor);
      const packed = { ...options, cuSeqlensQ, cuSeqlensK };
      const { output, logSumExp } = await engine.attention(q, k, v, {
        ...packed,
        returnLogSumExp: true,
      });
      const got = await engine.attentionBackward(dOutput, q, k, v, output, logSumExp, packed);
      expect(got.dq.shape).toEqual(q.shape);
      const sinks = new Float32Array(options.sinks ? 4 : 0);
      for (let n = 0; n + 1 < cuSeqlensQ.length; n++) {
        const rows = [cuSeqlensQ[n], cuSeqlensQ[n + 1]];
        const keys = [cuSeqlensK[n], cuSeqlensK[n + 1]];
        const own = [slice(q, ...rows), slice(k, ...keys), slice(v, ...keys)];
        const forward = engine.attentionSync(...own, { ...options, returnLogSumExp: true });
        const expected = engine.attentionBackwardSync(
          slice(dOutput, ...rows),
          ...own,
          forward.output,
          forward.logSumExp,
          options,
        );
        expectClose(slice(got.dq, ...rows), expected.dq, cached, `dq ${n}`);
        expectClose(slice(got.dk, ...keys), expected.dk, cached, `dk ${n}`);
        expectClose(slice(got.dv, ...keys), expected.dv, cached, `dv ${n}`);
        expected.dSinks?.data.forEach((x, h) => (sinks[h] += x));
      }
      if (options.sinks) expectClose(got.dSinks, { data: sinks, shape: [4] }, cached, 'dSinks');
    });
  });

  test('nothing of a neighbour is read, not even NaN', () => {
    const q = randomTensor([1, 1, 6, 4], 1);
    const k = randomTensor([1, 1, 9, 4], 2);
    const v = randomTensor([1, 1, 9, 4], 3);
    for (let j = 3; j < 6; j++) for (const x of [k, v]) x.data.fill(NaN, j * 4, j * 4 + 4);
    const { output } = engine.attentionSync(q, k, v, {
      cuSeqlensQ: [0, 2, 3, 6],
      cuSeqlensK: [0, 3, 6, 9],
    });
    const isNaNRow = (i) => output.data.subarray(i * 4, i * 4 + 4).every(Number.isNaN);
    expect([0, 1, 2, 3, 4, 5].map(isNaNRow)).toEqual([false, false, true, false, false, false]);
  });

  test('rank 3 packs tokens as they come', () => {
    const [q, k, v] = [
      [1, 10, 4 * 8],
      [1, 10, 2 * 8],
      [1, 10, 2 * 8],
    ].map(randomTensor);
    const options = { numHeads: 4, numKvHeads: 2, cuSeqlensQ: [0, 4, 10], cuSeqlensK: [0, 4, 10] };
    const { output } = engine.attentionSync(q, k, v, options);
    const rowsOf = (x, first, last) => ({
      data: x.data.slice((first * x.data.length) / 10, (last * x.data.length) / 10),
      shape: [1, last - first, x.shape[2]],
    });
    for (const [first, last] of [
      [0, 4],
      [4, 10],
    ]) {
      const own = engine.attentionSync(...[q, k, v].map((x) => rowsOf(x, first, last)), {
        numHeads: 4,
        numKvHeads: 2,
      });
      expectClose(rowsOf(output, first, last), own.output, cached);
    }
  });

  const x = randomTensor([1, 1, 4, 2], 1);
  test.each([
    [{ cuSeqlensQ: [0, 4] }, /cuSeqlensK/],
    [{ cuSeqlensQ: [0, 3], cuSeqlensK: [0, 4] }, /cuSeqlensQ: 4/],
    [{ cuSeqlensQ: [1, 4], cuSeqlensK: [0, 4] }, /cuSeqlensQ\[0\]/],
    [{ cuSeqlensQ: [0, 3, 2, 4], cuSeqlensK: [0, 1, 2, 4] }, /cuSeqlensQ\[2\]/],
    [{ cuSeqlensQ: [0, 2, 4], cuSeqlensK: [0, 4] }, /cuSeqlensK/],
    [{ cuSeqlensQ: [0, 4], cuSeqlensK: [0, 4], mask: [true] }, /mask/],
    [{ cuSeqlensQ: [0, 4], cuSeqlensK: [0, 4], returnWeights: true }, /returnWeights/],
  ])('%j is refused', async (options, words) => {
    expect((await errorOf(() => engine.attention(x, x, x, options))).message).toMatch(words);
  });
});

const pack = ({ data, shape }) => {
  const size = shape.at(-1);
  const bytes = Math.ceil(size / 8);
  const bits = new Uint8Array((data.length / size) * bytes);
  data.forEach((seen, at) => {
    const [row, j] = [Math.floor(at / size), at % size];
    if (seen) bits[row * bytes + (j >> 3)] |= 1 << (j & 7);
  });
  return { bits, shape };
};

const randomMask = (shape, share, seed) => {
  const next = randomSource(seed);
  const length = shape.reduce((a, b) => a * b, 1);
  return { data: Uint8Array.from({ length }, () => (next() < share ? 1 : 0)), shape };
};

describe('masks of bits', () => {
  test.each([
    [[70, 141], 70, 141],
    [[141], 70, 141],
    [[2, 1, 1, 141], 70, 141],
    [[4, 70, 1], 70, 141],
    [[2, 4, 3, 13], 3, 13],
    [[1, 300], 1, 300],
  ])('of shape %j', (shape, L, S) => {
    const inputs = [
      [2, 4, L, 8],
      [2, 2, S, 8],
      [2, 2, S, 6],
    ].map(randomTensor);
    for (const share of [0.5, 0.02, 1, 0]) {
      const mask = randomMask(shape, share, 7);
      const options = { returnWeights: true, causal: L > 3 };
      const bytes = engine.attentionSync(...inputs, { ...options, mask });
      const bits = engine.attentionSync(...inputs, { ...options, mask: pack(mask) });
      expectSame(bits.output, bytes.output);
      expectSame(bits.weights, bytes.weights);
    }
  });

  test('of the wrong length are refused', () => {
    const x = randomTensor([1, 1, 9, 2], 1);
    const bits = new Uint8Array(17);
    expect(() => engine.attentionSync(x, x, x, { mask: { bits, shape: [9, 9] } })).toThrow(
      /18 bytes/,
    );
    expect(() => engine.attentionSync(x, x, x, { mask: { bits: [1], shape: [9] } })).toThrow(
      /Uint8Array/,
    );
    expect(() => engine.attentionSync(x, x, x, { mask: { bits, shape: [8, 9] } })).toThrow(
      /broadcast/,
    );
  });
});

describe('block-sparse masks', () => {
  const sparse = (size, L, S, share, seed) => {
    const next = randomSource(seed);
    const [rows, columns] = [[0], []];
    for (let r = 0; r * size < L; r++) {
      for (let c = 0; c * size < S; c++) if (next() < share) columns.push(c);
      rows.push(columns.length);
    }
    return { size, rows, columns };
  };
  const dense = ({ size, rows, columns }, L, S) => ({
    data: Uint8Array.from({ length: L * S }, (_, at) => {
      const [i, j] = [Math.floor(at / S), at % S];
      const row = Math.floor(i / size);
      return columns.slice(rows[row], rows[row + 1]).includes(Math.floor(j / size)) ? 1 : 0;
    }),
    shape: [L, S],
  });
  test.each([
    [16, 200, 300, 0.3],
    [64, 130, 300, 0.5],
    [128, 300, 300, 0.5],
    [7, 60, 50, 0.2],
    [1, 20, 20, 0.5],
    [400, 30, 500, 1],
    [32, 2, 400, 0.5], // few queries: keys and values where they lie
    [32, 100, 100, 0],
  ])('blocks of %i, %i queries, %i keys, a share of %f', (size, L, S, share) => {
    const [q, k, v] = [
      [1, 2, L, 8],
      [1, 2, S, 8],
      [1, 2, S, 6],
    ].map(randomTensor);
    const blockMask = sparse(size, L, S, share, 3);
    const mask = dense(blockMask, L, S);
    // What is hidden has no influence at all.
    const poisoned = { ...v, data: Float32Array.from(v.data) };
    const seen = (j) => mask.data.some((bit, at) => bit && at % S === j);
    for (let j = 0; j < S; j++)
      if (!seen(j))
        for (const h of [0, 1]) poisoned.data.fill(NaN, (h * S + j) * 6, (h * S + j + 1) * 6);
    for (const options of [
      {},
      { causal: true, window: [60, 0] },
      { returnWeights: true, returnScores: 'masked' },
    ]) {
      const byBlocks = engine.attentionSync(q, k, poisoned, { ...options, blockMask });
      const byMask = engine.attentionSync(q, k, v, { ...options, mask });
      expectClose(byBlocks.output, byMask.output, cached);
      if (options.returnWeights) {
        expectClose(byBlocks.weights, byMask.weights, cached);
        expectClose(byBlocks.scores, byMask.scores, cached);
      }
    }
    const both = engine.attentionSync(q, k, v, {
      blockMask,
      mask: pack(randomMask([L, S], 0.7, 9)),
    });
    const and = randomMask([L, S], 0.7, 9);
    and.data.forEach((bit, at) => (and.data[at] = bit & mask.data[at]));
    expectClose(both.output, engine.attentionSync(q, k, v, { mask: and }).output, cached);
  });

  const x = randomTensor([1, 1, 8, 2], 1);
  test.each([
    [{ size: 0, rows: [0], columns: [] }, /size/],
    [{ size: 4, rows: [0, 1], columns: [0] }, /rows/],
    [{ size: 4, rows: [0, 1, 3], columns: [0, 1] }, /rows\[2\]/],
    [{ size: 4, rows: [0, 1, 1], columns: [0, 1] }, /rows/],
    [{ size: 4, rows: [0, 1, 2], columns: [0, 2] }, /columns\[1\]/],
    [{ size: 4, rows: [0, 2, 2], columns: [1, 0] }, /columns\[1\]/],
    [{ size: 4, rows: [0, 2, 2], columns: [1, 1] }, /columns\[1\]/],
    [{ size: 4, rows: [1, 2, 2], columns: [1, 1] }, /rows\[0\]/],
  ])('%j is refused', (blockMask, words) => {
    expect(() => engine.attentionSync(x, x, x, { blockMask })).toThrow(words);
  });
});
