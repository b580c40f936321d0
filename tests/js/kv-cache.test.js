// Tests: the key/value cache: any division of a text gives one full pass; cells, rings, lengths, failures, memory.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { randomTensor } from './support/random.js';
import { cached, cachedFloat16, cachedInt8 } from './tolerances.js';
import { numbers } from './tricks.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

/** Rows first … first + count − 1 of [B,H,L,D]. */
function part({ data, shape: [b, h, l, d] }, first, count) {
  const out = new Float32Array(b * h * count * d);
  for (let head = 0; head < b * h; head++) {
    const from = (head * l + first) * d;
    out.set(data.subarray(from, from + count * d), head * count * d);
  }
  return { data: out, shape: [b, h, count, d] };
}

/** Tensors of a part, joined along L again. */
function join(parts) {
  const [b, h, , d] = parts[0].shape;
  const l = parts.reduce((sum, { shape }) => sum + shape[2], 0);
  const data = new Float32Array(b * h * l * d);
  let at = 0;
  for (const { data: piece, shape } of parts) {
    const size = shape[2] * d;
    for (let head = 0; head < b * h; head++)
      data.set(piece.subarray(head * size, (head + 1) * size), head * l * d + at);
    at += size;
  }
  return { data, shape: [b, h, l, d] };
}

function attendInChunks(cache, { q, k, v }, chunks, options) {
  let at = 0;
  return join(
    chunks.map((size) => {
      const call = [q, k, v].map((x) => part(x, at, size));
      at += size;
      return cache.attendSync(...call, options).output;
    }),
  );
}

const text = (batch, heads, kvHeads, length, dim, valueDim) => ({
  q: randomTensor([batch, heads, length, dim], 1),
  k: randomTensor([batch, kvHeads, length, dim], 2),
  v: randomTensor([batch, kvHeads, length, valueDim], 3),
});

const ones = (count) => Array(count).fill(1);

describe('any division of a text gives one causal pass', () => {
  const length = 301;
  const divisions = [
    ['at once', [length]],
    ['chunks', [150, 1, 7, 8, 9, 126]],
    ['a prompt, then steps', [270, ...ones(31)]],
    ['steps', ones(length)],
  ];
  const inputs = text(2, 4, 2, length, 20, 12);
  const config = { batch: 2, numKvHeads: 2, headDim: 20, valueHeadDim: 12, capacity: 320 };

  test.each(divisions)('%s', (_name, chunks) => {
    const cache = engine.createKVCache(config);
    const full = engine.attentionSync(inputs.q, inputs.k, inputs.v, { causal: true });
    expectClose(attendInChunks(cache, inputs, chunks), full.output, cached);
    expect(cache.lengths).toEqual([length, length]);
    cache.dispose();
  });

  test.each(divisions)('%s, rotated', (_name, chunks) => {
    const rope = { base: 500, dim: 12, interleaved: true, scaling: { type: 'linear', factor: 2 } };
    const cache = engine.createKVCache({ ...config, rope });
    const [q, k] = [inputs.q, inputs.k].map((x) => engine.rotaryEmbeddingSync(x, rope));
    const full = engine.attentionSync(q, k, inputs.v, { causal: true });
    expectClose(attendInChunks(cache, inputs, chunks), full.output, cached);
    cache.dispose();
  });

  test.each([
    ['f16', cachedFloat16],
    ['int8', cachedInt8],
  ])('%s: as near as its cells allow', (dtype, tolerance) => {
    const full = engine.attentionSync(inputs.q, inputs.k, inputs.v, { causal: true });
    const results = divisions.map(([, chunks]) => {
      const cache = engine.createKVCache({ ...config, dtype });
      expect(cache.dtype).toBe(dtype);
      const result = attendInChunks(cache, inputs, chunks);
      cache.dispose();
      return result;
    });
    for (const result of results) {
      expectClose(result, full.output, tolerance);
      expectClose(result, results[0], cached); // the cells are the same however they came
    }
    expect(results[0].data.some((x, i) => x !== full.output.data[i])).toBe(true);
  });

  test('with masks, weights and a log-sum-exp, as attention has them', () => {
    const cache = engine.createKVCache(config);
    const [first, last] = [290, 11];
    cache.appendSync(part(inputs.k, 0, first), part(inputs.v, 0, first));
    const keyPaddingMask = {
      data: Uint8Array.from({ length: 2 * length }, (_, i) => (i % 7 ? 1 : 0)),
      shape: [2, length],
    };
    const options = { keyPaddingMask, softcap: 2, returnWeights: true, returnLogSumExp: true };
    const call = [inputs.q, inputs.k, inputs.v].map((x) => part(x, first, last));
    const result = cache.attendSync(...call, options);
    const full = engine.attentionSync(call[0], inputs.k, inputs.v, { ...options, causal: true });
    for (const name of ['output', 'weights', 'logSumExp']) {
      expect(result[name].shape).toEqual(full[name].shape);
      expectClose(result[name], full[name], cached, name);
    }
    cache.dispose();
  });

  test('layouts and ranks', () => {
    const short = text(1, 4, 2, 3, 5, 5);
    const swap = ({ data, shape: [b, h, l, d] }) => {
      const out = new Float32Array(data.length);
      for (let i = 0; i < l; i++)
        for (let head = 0; head < h; head++)
          out.set(data.subarray((head * l + i) * d, (head * l + i + 1) * d), (i * h + head) * d);
      return { data: out, shape: [b, l, h, d] };
    };
    const make = () => engine.createKVCache({ numKvHeads: 2, headDim: 5, capacity: 3 });
    const plain = make().attendSync(short.q, short.k, short.v).output;
    const swapped = [short.q, short.k, short.v].map(swap);
    const blhd = make().attendSync(...swapped, { layout: 'blhd' }).output;
    expectSame(blhd, swap(plain));
    const flat = swapped.map(({ data, shape: [b, l, h, d] }) => ({ data, shape: [b, l, h * d] }));
    const rank3 = make().attendSync(...flat).output;
    expect(rank3.shape).toEqual([1, 3, 20]);
    expectSame(rank3, blhd);
  });
});

describe('rings', () => {
  // What attention says of a window with sinks.
  const maskOf = (length, window, sinks) => ({
    data: Uint8Array.from({ length: length * length }, (_, at) => {
      const [i, j] = [Math.floor(at / length), at % length];
      return j <= i && (j > i - window || j < sinks) ? 1 : 0;
    }),
    shape: [length, length],
  });
  const length = 60;
  const inputs = text(1, 4, 2, length, 8, 6);

  describe.each([
    [7, 0],
    [7, 3],
    [40, 3],
    [1, 2],
    [70, 4],
  ])('window %i, %i sink tokens', (window, sinkTokens) => {
    test.each([
      ['at once', [length], 'f32'],
      ['steps', ones(length), 'f32'],
      ['chunks', [1, 2, 30, 9, 18], 'f32'],
      ['chunks', [1, 2, 30, 9, 18], 'f16'],
      ['steps', ones(length), 'int8'],
    ])('%s of %j, %s', (_name, chunks, dtype) => {
      for (const spare of [0, 1, 20]) {
        const cache = engine.createKVCache({
          numKvHeads: 2,
          headDim: 8,
          valueHeadDim: 6,
          window,
          sinkTokens,
          capacity: window + sinkTokens + spare,
          dtype,
          rope: {},
        });
        const [q, k] = [inputs.q, inputs.k].map((x) => engine.rotaryEmbeddingSync(x));
        const alibiSlopes = [0.1, 0.2, 0.3, 0.4];
        const full = engine.attentionSync(q, k, inputs.v, {
          mask: maskOf(length, window, sinkTokens),
          alibiSlopes,
          causalOffset: 0,
        });
        const tolerance = { f32: cached, f16: cachedFloat16, int8: cachedInt8 }[dtype];
        const output = attendInChunks(cache, inputs, chunks, { alibiSlopes });
        expectClose(output, full.output, tolerance, `spare ${spare}`);
        expect(cache.lengths).toEqual([length]);
        cache.dispose();
      }
    });
  });

  test('the log-sum-exp of a prompt that goes in pieces', () => {
    const cache = engine.createKVCache({ numKvHeads: 2, headDim: 8, valueHeadDim: 6, window: 7 });
    const small = engine.createKVCache({
      numKvHeads: 2,
      headDim: 8,
      valueHeadDim: 6,
      window: 7,
      capacity: 10,
    });
    const call = [inputs.q, inputs.k, inputs.v, { returnLogSumExp: true }];
    const full = engine.attentionSync(inputs.q, inputs.k, inputs.v, {
      causal: true,
      window: [6, 0],
      returnLogSumExp: true,
    });
    for (const one of [cache, small]) {
      const result = one.attendSync(...call);
      expectClose(result.logSumExp, full.logSumExp, cached);
      one.dispose();
    }
  });

  test('what goes by the number of a key is refused', () => {
    const cache = engine.createKVCache({ numKvHeads: 2, headDim: 8, valueHeadDim: 6, window: 7 });
    const call = [inputs.q, inputs.k, inputs.v];
    for (const options of [{ mask: [[true]] }, { returnWeights: true }, { window: [1, 0] }])
      expect(() => cache.attendSync(...call, options)).toThrow(
        /not with a cache that has a window/,
      );
    expect(() => cache.attendSync(...call, { causal: false })).toThrow(RangeError);
    cache.dispose();
  });
});

test('rows have their own lengths, and swap with the rows', () => {
  const inputs = text(2, 2, 1, 9, 4, 4);
  const cache = engine.createKVCache({ batch: 2, numKvHeads: 1, headDim: 4, capacity: 16 });
  const counts = [
    [5, 2],
    [0, 3],
    [4, 1],
  ];
  const row = (x, b) => ({
    data: x.data.subarray((b * x.data.length) / 2, ((b + 1) * x.data.length) / 2),
    shape: [1, ...x.shape.slice(1)],
  });
  const alone = [0, 1].map(() => engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 16 }));
  for (const lengths of counts) {
    const { output } = cache.attendSync(inputs.q, inputs.k, inputs.v, { lengths });
    [0, 1].forEach((b) => {
      const call = [inputs.q, inputs.k, inputs.v].map((x) => row(x, b));
      const own = alone[b].attendSync(...call, { lengths: [lengths[b]] });
      expectClose(row(output, b), own.output, cached);
    });
  }
  expect(cache.lengths).toEqual([9, 6]);
});

describe('a full cache', () => {
  const x = (length) => randomTensor([1, 1, length, 4], length);
  test('is an INVALID_SHAPE before anything moves', async () => {
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 4 });
    cache.appendSync(x(3), x(3));
    const fork = cache.fork();
    const error = await errorOf(() => cache.append(x(2), x(2)));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.code).toBe('INVALID_SHAPE');
    expect(error.message).toMatch(/^k: the cache is full: at most 1 tokens wanted .* got 2$/);
    expect(() => cache.attendSync(x(2), x(2), x(2))).toThrow(/full/);
    expect(cache.lengths).toEqual([3]);
    expectSame(cache.attendSync(x(1), x(1), x(1)).output, fork.attendSync(x(1), x(1), x(1)).output);
  });

  test('is found among calls that are still on their way', async () => {
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 4 });
    const calls = [1, 2, 3].map(() => cache.append(x(2), x(2)));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(cache.lengths).toEqual([4]);
  });
});

describe('failures', () => {
  const x = (length) => randomTensor([1, 1, length, 4], length);
  test('an aborted call has appended nothing, and what was built on it fails', async () => {
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 9 });
    await cache.append(x(2), x(2));
    const busy = engine.attention(x(2), x(2), x(2));
    const controller = new AbortController();
    const aborted = cache.attend(x(3), x(3), x(3), { signal: controller.signal });
    const behind = cache.attend(x(1), x(1), x(1));
    expect(cache.lengths).toEqual([6]);
    controller.abort();
    await busy;
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(behind).rejects.toMatchObject({ code: 'INVALID_VALUE' });
    expect(cache.lengths).toEqual([2]);
    await cache.append(x(7), x(7));
    expect(cache.lengths).toEqual([9]);
  });

  test('aborted in the middle of its work, it leaves the cache as it was', async () => {
    const long = randomTensor([1, 8, 6000, 8], 1);
    const keys = randomTensor([1, 1, 6000, 8], 2);
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 8, capacity: 6001 });
    const controller = new AbortController();
    const call = cache.attend(long, keys, keys, { signal: controller.signal });
    setTimeout(() => controller.abort());
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(cache.lengths).toEqual([0]);
    const one = [randomTensor([1, 8, 1, 8], 1), part(keys, 0, 1), part(keys, 0, 1)];
    const { output } = await cache.attend(...one);
    expectClose(output, Array(8).fill(numbers(one[2])).flat(), cached);
    cache.dispose();
  });

  test('a synchronous call waits for nobody', async () => {
    const cache = engine.createKVCache({ numKvHeads: 1, headDim: 4, capacity: 9 });
    const running = cache.append(x(2), x(2));
    expect(() => cache.appendSync(x(1), x(1))).toThrow(/await/);
    await running;
    cache.appendSync(x(1), x(1));
    expect(cache.lengths).toEqual([3]);
  });

  test.each([
    [{ headDim: 4, capacity: 4 }, TypeError, /numKvHeads/],
    [{ numKvHeads: 0, headDim: 4, capacity: 4 }, RangeError, /numKvHeads/],
    [{ numKvHeads: 1, headDim: 4 }, TypeError, /capacity/],
    [{ numKvHeads: 1, headDim: 4, capacity: 4, dtype: 'f64' }, RangeError, /dtype/],
    [{ numKvHeads: 1, headDim: 4, capacity: 4, sinkTokens: 2 }, RangeError, /sinkTokens/],
    [{ numKvHeads: 1, headDim: 4, capacity: 4, window: 4, sinkTokens: 1 }, RangeError, /capacity/],
    [{ numKvHeads: 1, headDim: 4, capacity: 4, size: 4 }, RangeError, /size/],
    [{ numKvHeads: 1, headDim: 4, capacity: 4, rope: { dim: 6 } }, RangeError, /rope.dim/],
    [{ numKvHeads: 64, headDim: 256, capacity: 2 ** 22 }, RangeError, /bytes/],
  ])('%j is refused', (config, kind, words) => {
    const error = (() => {
      try {
        engine.createKVCache(config);
      } catch (e) {
        return e;
      }
      return undefined;
    })();
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toMatch(words);
  });

  test('shapes that do not fit are refused by name', () => {
    const cache = engine.createKVCache({ numKvHeads: 2, headDim: 4, capacity: 4 });
    const kv = randomTensor([1, 2, 1, 4], 1);
    expect(() => cache.attendSync(randomTensor([1, 3, 1, 4], 1), kv, kv)).toThrow(/^q: /);
    expect(() => cache.attendSync(randomTensor([1, 4, 2, 4], 1), kv, kv)).toThrow(/^q: /);
    expect(() => cache.appendSync(randomTensor([1, 1, 1, 4], 1), kv)).toThrow(/^k: /);
    expect(() => cache.appendSync(kv, randomTensor([1, 2, 1, 3], 1))).toThrow(/^v: /);
    expect(() => cache.appendSync(kv, kv, { lengths: [2] })).toThrow(/lengths/);
    expect(() => cache.attendSync(kv, kv, kv, { kvLengths: [1] })).toThrow(/kvLengths/);
    expect(cache.lengths).toEqual([0]);
  });
});

describe('forks', () => {
  test('go their own way, row by row', () => {
    const x = (length, seed) => randomTensor([2, 1, length, 4], seed);
    for (const dtype of ['f32', 'f16', 'int8']) {
      const cache = engine.createKVCache({
        batch: 2,
        numKvHeads: 1,
        headDim: 4,
        capacity: 8,
        dtype,
      });
      cache.appendSync(x(3, 1), x(3, 2), { lengths: [3, 2] });
      const swapped = cache.fork({ rows: [1, 0, 1] });
      expect(swapped.batch).toBe(3);
      expect(swapped.lengths).toEqual([2, 3, 2]);
      const step = x(1, 3);
      const own = numbers(cache.attendSync(step, step, step).output);
      const back = swapped.fork({ rows: [1, 0] });
      expect(numbers(back.attendSync(step, step, step).output)).toEqual(own);
      expect(swapped.lengths).toEqual([2, 3, 2]);
      expect(() => cache.fork({ rows: [2] })).toThrow(/rows/);
      for (const one of [cache, swapped, back]) one.dispose();
    }
  });
});

describe('memory', () => {
  const inUse = async (e) => (await e.memory()).inUseBytes;

  test('is counted, of the size of its cells, and freed', async () => {
    const before = await inUse(engine);
    const sizes = [];
    for (const dtype of ['f32', 'f16', 'int8']) {
      const cache = engine.createKVCache({ numKvHeads: 8, headDim: 128, capacity: 1024, dtype });
      sizes.push((await inUse(engine)) - before);
      const fork = cache.fork();
      cache.dispose();
      cache.dispose();
      fork.dispose();
      expect(await inUse(engine)).toBe(before);
    }
    const [f32, f16, int8] = sizes;
    expect(f32 / (8 * 1024 * 256 * 4)).toBeCloseTo(1, 3);
    expect(f32 / f16).toBeCloseTo(2, 2);
    expect(f32 / int8).toBeGreaterThan(3.8);
  });

  test('10,000 steps leave nothing', async () => {
    const own = await createEngine({ backend: 'wasm', threads: 2 });
    const caches = [
      { window: 100, sinkTokens: 4 },
      { capacity: 20_000, dtype: 'int8' },
    ].map((c) => own.createKVCache({ numKvHeads: 1, headDim: 4, rope: {}, ...c }));
    const x = randomTensor([1, 1, 1, 4], 1);
    const q = randomTensor([1, 2, 1, 4], 1);
    let marks;
    for (let i = 0; i < 10_000; i++) {
      for (const cache of caches) cache.attendSync(q, x, x);
      if (i === 2000) marks = await own.memory();
    }
    const after = await own.memory();
    expect(after.heapBytes).toBe(marks.heapBytes);
    expect(after.inUseBytes).toBe(marks.inUseBytes);
    own.dispose();
  });

  test('of a cache that was dropped is freed in the end', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const before = await inUse(engine);
    const large = { numKvHeads: 8, headDim: 128, capacity: 1024 };
    engine.createKVCache(large);
    const [deadline, taken] = [Date.now() + 10_000, await inUse(engine)];
    expect(taken).toBeGreaterThan(before + 8 * 2 ** 20);
    while ((await inUse(engine)) > before + 2 ** 20 && Date.now() < deadline) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await inUse(engine)).toBeLessThan(before + 2 ** 20);
  });

  test('of a cache that does not fit is an OUT_OF_MEMORY', async () => {
    const small = await createEngine({ backend: 'wasm', threads: 1, maxMemoryBytes: 2 ** 26 });
    const config = { numKvHeads: 8, headDim: 128, capacity: 16384 };
    const error = await errorOf(() => small.createKVCache(config));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect(error.bytesWanted).toBeGreaterThanOrEqual(8 * 128 * 16384 * 2 * 4);
    small.createKVCache({ ...config, capacity: 16 }).dispose();
    small.dispose();
  });
});

test('an engine in a worker has the same caches', async () => {
  const remote = await createEngine({ backend: 'wasm', threads: 2, offMainThread: true });
  const config = { numKvHeads: 2, headDim: 8, valueHeadDim: 6, capacity: 64, rope: {} };
  const inputs = text(1, 4, 2, 20, 8, 6);
  const here = engine.createKVCache(config);
  const there = remote.createKVCache(config);
  let at = 0;
  const pending = [];
  for (const size of [12, 1, 7]) {
    const call = [inputs.q, inputs.k, inputs.v].map((x) => part(x, at, size));
    pending.push([there.attend(...call), here.attendSync(...call)]);
    at += size;
  }
  for (const [far, near] of pending) expectSame((await far).output, near.output);
  expect(there.lengths).toEqual([20]);
  const fork = there.fork();
  const trimmed = there.trim(5);
  const last = [inputs.q, inputs.k, inputs.v].map((x) => part(x, 0, 1));
  const forked = await fork.attend(...last);
  await trimmed;
  expectSame(forked.output, here.attendSync(...last).output);
  expect([fork.lengths, there.lengths]).toEqual([[21], [5]]);
  expect(() => there.appendSync(last[1], last[2])).toThrow(/worker|this thread/);
  await expect(there.append(part(inputs.k, 0, 19), last[2])).rejects.toThrow(RangeError);
  const huge = remote.createKVCache({ numKvHeads: 8, headDim: 128, capacity: 500_000 });
  await expect(
    huge.append(randomTensor([1, 8, 1, 128], 1), randomTensor([1, 8, 1, 128], 1)),
  ).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  there.dispose();
  await expect(there.attend(...last)).rejects.toMatchObject({ code: 'DISPOSED' });
  remote.dispose();
  await expect(fork.attend(...last)).rejects.toMatchObject({ code: 'DISPOSED' });
});
