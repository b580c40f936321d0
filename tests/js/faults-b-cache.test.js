// Tests: known faults of caches and decoding (part B): positions, pair conventions, chunks, windows, lengths, reuse.
import { createEngine } from 'headwise';
import { expectClose } from './compare.js';
import { errorOf } from './support/known.js';
import { cached } from './tolerances.js';
import { numbers, rows, zeros } from './tricks.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

const one = { numKvHeads: 1, headDim: 1, capacity: 8 };
/** Equal weights: zeros for queries and keys, so that the output is the mean of the visible values. */
const feed = (cache, values, options) =>
  numbers(
    cache.attendSync(zeros(values.length), zeros(values.length), rows(values), options).output,
  );

describe('B1, positions with a cache', () => {
  const rope = { base: 10000 };
  const token = rows([[1, 0]]);
  test.each(['f32', 'f16', 'int8'])('tokens one at a time equal a full pass, %s', (dtype) => {
    const config = { numKvHeads: 1, headDim: 2, valueHeadDim: 1, capacity: 4, rope, dtype };
    const cache = engine.createKVCache(config);
    const out = [1, 2, 3, 4].map(
      (v) => cache.attendSync(token, token, rows([v]), { scale: 1 }).output.data[0],
    );
    const tolerance = dtype === 'f32' ? cached : { absolute: 0.03, relative: 0 };
    expectClose([out[3]], [3.2406781], tolerance);
    const turned = engine.rotaryEmbeddingSync(rows(Array(4).fill([1, 0])));
    const full = engine.attentionSync(turned, turned, rows([1, 2, 3, 4]), {
      scale: 1,
      causal: true,
    });
    expectClose(out, numbers(full.output), tolerance);
    const whole = engine.createKVCache(config);
    const four = rows(Array(4).fill([1, 0]));
    expectClose(
      whole.attendSync(four, four, rows([1, 2, 3, 4]), { scale: 1 }).output,
      out,
      tolerance,
    );
    cache.dispose();
    whole.dispose();
  });
});

describe('B3, pair conventions', () => {
  const x = rows([[1, 2, 3, 4]]);
  test('neighbours and halves', () => {
    const at = (interleaved, offset) =>
      numbers(engine.rotaryEmbeddingSync(x, { interleaved, offset }));
    const fiveDecimals = { absolute: 6e-6, relative: 0 };
    expectClose(at(true, 1), [-1.14264, 1.92208, 2.95985, 4.0298], fiveDecimals);
    expectClose(at(false, 1), [-1.98411, 1.9599, 2.46238, 4.0198], fiveDecimals);
    for (const interleaved of [true, false]) expect(at(interleaved, 0)).toEqual([1, 2, 3, 4]);
  });

  test.each([true, false])('products go by the distance, interleaved %s', (interleaved) => {
    const q = rows([[0.3, -0.8, 0.5, 0.9]]);
    const k = rows([[-0.2, 0.7, 0.4, -0.6]]);
    const products = [0, 50].map((p) => {
      const a = engine.rotaryEmbeddingSync(q, { interleaved, offset: p }).data;
      const b = engine.rotaryEmbeddingSync(k, { interleaved, offset: p + 3 }).data;
      return a.reduce((sum, value, i) => sum + value * b[i], 0);
    });
    expect(Math.abs(products[0] - products[1])).toBeLessThan(1e-5);
  });

  test('an odd size is an error', async () => {
    const error = await errorOf(() => engine.rotaryEmbedding(rows([[1, 2, 3]])));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(/dim/);
    expect(() =>
      engine.createKVCache({ numKvHeads: 1, headDim: 3, capacity: 4, rope: {} }),
    ).toThrow(RangeError);
  });
});

test.each([[[5]], [[3, 2]], [[1, 4]], [[2, 2, 1]], [[1, 1, 1, 1, 1]]])(
  'B4, a prompt in chunks of %j',
  (chunks) => {
    const cache = engine.createKVCache(one);
    let next = 1;
    const out = chunks.flatMap((size) =>
      feed(
        cache,
        Array.from({ length: size }, () => next++),
      ),
    );
    expect(out).toEqual([1, 1.5, 2, 2.5, 3]);
    cache.dispose();
  },
);

describe('B6, sliding windows', () => {
  const expected = {
    1: [1, 2, 3, 4, 5],
    2: [1, 1.5, 2.5, 3.5, 4.5],
    5: [1, 1.5, 2, 2.5, 3],
    9: [1, 1.5, 2, 2.5, 3],
  };
  const splits = [[5], [1, 1, 1, 1, 1], [2, 3], [4, 1]];
  for (const window of [1, 2, 5, 9]) {
    test.each(splits.flatMap((split) => [0, 1, 3].map((spare) => [split, spare])))(
      `window ${window}, chunks of %j, %i slots to spare`,
      (split, spare) => {
        const cache = engine.createKVCache({ ...one, window, capacity: window + spare });
        let next = 1;
        const out = split.flatMap((size) =>
          feed(
            cache,
            Array.from({ length: size }, () => next++),
          ),
        );
        expect(out).toEqual(expected[window]);
        cache.dispose();
      },
    );
  }

  test('the same as attention with a window', () => {
    const full = engine.attentionSync(zeros(5), zeros(5), rows([1, 2, 3, 4, 5]), {
      causal: true,
      window: [1, 0],
    });
    expect(numbers(full.output)).toEqual(expected[2]);
  });

  test.each([0, -1, 1.5])('a window of %d is an error', (window) => {
    expect(() => engine.createKVCache({ ...one, window })).toThrow(RangeError);
  });
});

describe('B8, rows of different lengths', () => {
  const batchOf = (a, b) => ({
    data: Float32Array.from([...a, ...b].flat()),
    shape: [2, 1, a.length, a[0].length ?? 1],
  });
  const pad = 1000;
  const flat = (values) => values.map((v) => [v]);

  test('padding on the right, by lengths', () => {
    for (const swapped of [false, true]) {
      const order = (a, b) => (swapped ? [b, a] : [a, b]);
      const cache = engine.createKVCache({ ...one, batch: 2 });
      const keys = batchOf(...order(flat([0, 0, pad, pad]), flat([0, 0, 0, 0])));
      const values = batchOf(...order(flat([2, 4, pad, pad]), flat([1, 2, 3, 4])));
      cache.appendSync(keys, values, { lengths: order(2, 4) });
      const step = batchOf([[0]], [[0]]);
      const { output } = cache.attendSync(step, step, batchOf(...order([[6]], [[5]])));
      expect(numbers(output)).toEqual(order(4, 3));
      expect(cache.lengths).toEqual(order(3, 5));
      cache.dispose();
    }
  });

  test('padding on the left, by a padding mask', () => {
    const cache = engine.createKVCache({ ...one, batch: 2 });
    cache.appendSync(
      batchOf(flat([pad, pad, 0, 0]), flat([0, 0, 0, 0])),
      batchOf(flat([pad, pad, 2, 4]), flat([1, 2, 3, 4])),
    );
    const step = batchOf([[0]], [[0]]);
    const { output } = cache.attendSync(step, step, batchOf([[6]], [[5]]), {
      keyPaddingMask: [
        [false, false, true, true, true],
        [true, true, true, true, true],
      ],
    });
    expect(numbers(output)).toEqual([4, 3]);
    cache.dispose();
  });

  test('with rotation each row equals its own run', () => {
    const rope = {};
    const config = { numKvHeads: 1, headDim: 2, valueHeadDim: 1, capacity: 8, rope };
    const unit = [1, 0];
    const alone = (values) => {
      const cache = engine.createKVCache(config);
      const result = values.map((v) => {
        const x = rows([unit]);
        return cache.attendSync(x, x, rows([v]), { scale: 1 }).output.data[0];
      });
      cache.dispose();
      return result.at(-1);
    };
    const cache = engine.createKVCache({ ...config, batch: 2 });
    const x = batchOf(Array(4).fill(unit), Array(4).fill(unit));
    cache.appendSync(x, batchOf(flat([2, 4, pad, pad]), flat([1, 2, 3, 4])), { lengths: [2, 4] });
    const step = batchOf([unit], [unit]);
    const { output } = cache.attendSync(step, step, batchOf([[6]], [[5]]), { scale: 1 });
    expectClose(output, [alone([2, 4, 6]), alone([1, 2, 3, 4, 5])], cached);
    cache.dispose();
  });
});

describe('B9, reset, trim and reuse', () => {
  test('nothing of what was forgotten comes back', async () => {
    const cache = engine.createKVCache(one);
    feed(cache, [1, 2, 3, 4, 5]);
    await cache.trim(2);
    expect(feed(cache, [9])).toEqual([4]);
    expect(cache.lengths).toEqual([3]);
    await cache.reset();
    expect(cache.lengths).toEqual([0]);
    expect(feed(cache, [7])).toEqual([7]);
    cache.dispose();
  });

  test('a length that is not there is an error', async () => {
    const cache = engine.createKVCache(one);
    feed(cache, [1, 2, 3]);
    for (const length of [4, -1, 1.5]) await expect(cache.trim(length)).rejects.toThrow(RangeError);
    expect(cache.lengths).toEqual([3]);
    const ring = engine.createKVCache({ ...one, window: 2, capacity: 3 });
    feed(ring, [1, 2, 3]);
    await ring.trim(2); // it has not come round yet
    expect(feed(ring, [5])).toEqual([3.5]);
    feed(ring, [6]);
    await expect(ring.trim(2)).rejects.toThrow(/come round/); // the first of its last two tokens is lost
    expect(ring.lengths).toEqual([4]);
    await ring.trim(3);
    expect(feed(ring, [8])).toEqual([6.5]);
    ring.dispose();
    cache.dispose();
  });

  test('a cache that is disposed of says so', async () => {
    const cache = engine.createKVCache(one);
    feed(cache, [1]);
    cache.dispose();
    cache.dispose();
    const x = zeros(1);
    expect(() => cache.attendSync(x, x, x)).toThrow(/disposed/);
    await expect(cache.attend(x, x, x)).rejects.toMatchObject({ code: 'DISPOSED' });
    await expect(cache.trim(0)).rejects.toMatchObject({ code: 'DISPOSED' });
    expect(() => cache.fork()).toThrow(/disposed/);
  });
});
