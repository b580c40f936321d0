// Tests: the engine's surface: info, options of the start, layouts, results and their shapes, `out`, the small operations.

import { readFileSync } from 'node:fs';
import { createEngine, tensor, version } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { byHand } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

describe('start and end', () => {
  test('info says what runs and why there is no GPU', async () => {
    await engine.gpuReady();
    expect(engine.info).toMatchObject({
      version,
      backend: 'wasm',
      threads: 2,
      simd: true,
      gpu: null,
      offMainThread: false,
    });
    expect(['simd', 'relaxed']).toContain(engine.info.variant);
    expect(engine.info.gpuReason).toMatch(/WebGPU/);
    expect(engine.info.gpuReasonCode).toBe('no-webgpu');
    expect(engine.info).not.toHaveProperty('threadsReason');
    expect(version).toBe(
      JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version,
    );
  });

  test("backend 'wasm' never touches navigator.gpu, 'webgpu' is a clear error", async () => {
    const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
    Object.defineProperty(globalThis, 'navigator', {
      configurable: true,
      value: {
        hardwareConcurrency: 1,
        get gpu() {
          throw new Error('touched');
        },
      },
    });
    try {
      const other = await createEngine({ backend: 'wasm' });
      await expectWorks(other);
      other.dispose();
    } finally {
      delete globalThis.navigator;
      if (before !== undefined) Object.defineProperty(globalThis, 'navigator', before);
    }
    const error = await errorOf(() => createEngine({ backend: 'webgpu' }));
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'UNSUPPORTED' });
    expect(error.message).toMatch(/webgpu/);
  });

  test.each([
    [{ threads: '2' }, TypeError, 'INVALID_TYPE', /threads.*"2"/],
    [{ threads: 65 }, RangeError, 'INVALID_VALUE', /threads.*64.*65/],
    [{ variant: 'fast' }, RangeError, 'INVALID_VALUE', /variant.*fast/],
    [{ backend: null }, TypeError, 'INVALID_TYPE', /backend.*null/],
    [{ maxMemoryBytes: 100 }, RangeError, 'INVALID_VALUE', /maxMemoryBytes.*100/],
    [{ wasmBinary: 'x' }, TypeError, 'INVALID_TYPE', /wasmBinary/],
    [{ wasmUrl: 7 }, TypeError, 'INVALID_TYPE', /wasmUrl/],
    [{ signal: {} }, TypeError, 'INVALID_TYPE', /signal/],
    [{ offMainThread: 1 }, TypeError, 'INVALID_TYPE', /offMainThread/],
    [{ thread: 2 }, RangeError, 'INVALID_VALUE', /thread/],
    [7, TypeError, 'INVALID_TYPE', /options/],
  ])('createEngine(%j) is refused', async (options, kind, code, message) => {
    const error = await errorOf(() => createEngine(options));
    expect(error).toBeInstanceOf(kind);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });

  test('the start can be aborted, before and during', async () => {
    for (const signal of [AbortSignal.abort('no'), AbortSignal.timeout(1)]) {
      const error = await errorOf(() => createEngine({ threads: 4, signal }));
      expect(error).toMatchObject({ name: 'AbortError', code: 'ABORTED' });
    }
  });

  test('dispose is idempotent, and everything afterwards says so', async () => {
    const other = await createEngine({ threads: 2 });
    const mha = other.multiHeadAttention({ embedDim: 4, numHeads: 2 });
    const x = randomTensor([3, 4], 1);
    other.dispose();
    other.dispose();
    other[Symbol.dispose]?.();
    await other[Symbol.asyncDispose]?.();
    const calls = [
      () => other.attention(x, x, x),
      () => other.attentionSync(x, x, x),
      () => other.memory(),
      () => other.multiHeadAttention({ embedDim: 4, numHeads: 2 }),
      () => other.linear(x, [[1], [1], [1], [1]]),
      () => mha.forward(x),
      () => mha.getWeights(),
    ];
    for (const call of calls) {
      expect(await errorOf(call)).toMatchObject({ name: 'HeadwiseError', code: 'DISPOSED' });
    }
    mha.dispose();
    await expectWorks(engine);
  });
});

describe('layouts and results', () => {
  const [B, H, G, L, S, D, Dv] = [2, 4, 2, 3, 5, 6, 7];
  const q = randomTensor([B, H, L, D], 1);
  const k = randomTensor([B, G, S, D], 2);
  const v = randomTensor([B, G, S, Dv], 3);
  const options = { returnWeights: true, returnLogSumExp: true, returnScores: 'raw' };

  // [B,H,L,D] to [B,L,H,D].
  const swap = ({ data, shape: [b, h, l, d] }) => {
    const swapped = new Float32Array(data.length);
    for (let i = 0; i < b; i++) {
      for (let j = 0; j < h; j++) {
        for (let m = 0; m < l; m++) {
          for (let n = 0; n < d; n++)
            swapped[((i * l + m) * h + j) * d + n] = data[((i * h + j) * l + m) * d + n];
        }
      }
    }
    return { data: swapped, shape: [b, l, h, d] };
  };
  const joined = ({ data, shape: [b, l, h, d] }) => ({ data, shape: [b, l, h * d] });

  test("'bhld', 'blhd' and rank 3 are the same numbers in the inputs' layout", async () => {
    const a = await engine.attention(q, k, v, options);
    expect(a.output.shape).toEqual([B, H, L, Dv]);
    expect(a.weights.shape).toEqual([B, H, L, S]);
    expect(a.scores.shape).toEqual([B, H, L, S]);
    expect(a.logSumExp.shape).toEqual([B, H, L]);
    const b = await engine.attention(swap(q), swap(k), swap(v), { ...options, layout: 'blhd' });
    expect(b.output.shape).toEqual([B, L, H, Dv]);
    expectSame(b.output, swap(a.output));
    expectSame(b.weights, a.weights);
    const three = [q, k, v].map((t) => joined(swap(t)));
    const c = engine.attentionSync(...three, { ...options, numHeads: H, numKvHeads: G });
    expect(c.output.shape).toEqual([B, L, H * Dv]);
    expectSame(c.output, swap(a.output));
  });

  test('rank 2 is one batch and one head', () => {
    const two = (t, rows, size) => ({ data: t.data.slice(0, rows * size), shape: [rows, size] });
    const [q2, k2, v2] = [two(q, L, D), two(k, S, D), two(v, S, Dv)];
    const a = engine.attentionSync(q2, k2, v2, { returnWeights: true });
    expect(a.output.shape).toEqual([L, Dv]);
    expect(a.weights.shape).toEqual([1, 1, L, S]);
    const four = (t) => ({ data: t.data, shape: [1, 1, ...t.shape] });
    expectSame(a.output, engine.attentionSync(four(q2), four(k2), four(v2)).output);
  });

  test('only the heads that are asked for', () => {
    const all = engine.attentionSync(q, k, v, { returnWeights: true });
    const some = engine.attentionSync(q, k, v, { returnWeights: { heads: [3, 1] } });
    expect(some.weights.shape).toEqual([B, 2, L, S]);
    const head = (t, b, h, n) => t.data.slice((b * n + h) * L * S, (b * n + h + 1) * L * S);
    for (const b of [0, 1]) {
      expectSame(head(some.weights, b, 0, 2), head(all.weights, b, 3, H));
      expectSame(head(some.weights, b, 1, 2), head(all.weights, b, 1, H));
    }
  });

  test('out is written in place, and may be an input', async () => {
    const expected = engine.attentionSync(q, k, v).output;
    const out = new Float32Array(B * H * L * Dv);
    const { output } = await engine.attention(q, k, v, { out });
    expect(output.data).toBe(out);
    expectSame(out, expected);
    const square = randomTensor([1, 1, 4, 4], 5);
    const alone = engine.attentionSync(square, square, square).output;
    const copy = { ...square, data: square.data.slice() };
    engine.attentionSync(copy, copy, copy, { out: copy.data });
    expectSame(copy.data, alone);
  });

  test('sizes of zero', () => {
    const empty = (...shape) => ({ data: new Float32Array(0), shape });
    const none = engine.attentionSync(
      randomTensor([1, 1, 2, 3], 1),
      empty(1, 1, 0, 3),
      empty(1, 1, 0, 5),
      options,
    );
    expect(none.output.toArray()).toEqual([
      [
        [
          [0, 0, 0, 0, 0],
          [0, 0, 0, 0, 0],
        ],
      ],
    ]);
    expect(none.weights.shape).toEqual([1, 1, 2, 0]);
    expect(Array.from(none.logSumExp.data)).toEqual([-Infinity, -Infinity]);
    const [k1, v1] = [randomTensor([1, 1, 4, 3], 1), randomTensor([1, 1, 4, 2], 1)];
    expect(engine.attentionSync(empty(1, 1, 0, 3), k1, v1, options).output.shape).toEqual([
      1, 1, 0, 2,
    ]);
    expect(
      engine.attentionSync(empty(0, 1, 2, 3), empty(0, 1, 2, 3), empty(0, 1, 2, 3)).output.shape,
    ).toEqual([0, 1, 2, 3]);
    const noWidth = engine.attentionSync(
      empty(1, 1, 1, 0),
      empty(1, 1, 2, 0),
      tensor([[[[2], [4]]]]),
    );
    expect(noWidth.output.toArray()).toEqual([[[[3]]]]);
  });
});

describe('linear, embedding and positional encoding', () => {
  test('linear over the last axis, with and without a bias', async () => {
    const x = tensor([
      [
        [1, 2],
        [3, 4],
      ],
    ]);
    const y = await engine.linear(
      x,
      [
        [1, 0, 2],
        [0, 1, 3],
      ],
      [10, 20, 30],
    );
    expect(y.toArray()).toEqual([
      [
        [11, 22, 38],
        [13, 24, 48],
      ],
    ]);
    expectSame(
      engine.linearSync(x, [
        [1, 0, 2],
        [0, 1, 3],
      ]),
      [1, 2, 8, 3, 4, 18],
    );
    expect(engine.linearSync(tensor([], [2, 0]), tensor([], [0, 2]), [5, 6]).toArray()).toEqual([
      [5, 6],
      [5, 6],
    ]);
  });

  test('embedding of ids of any shape', async () => {
    const table = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    expect(
      (
        await engine.embedding(
          [
            [2, 0],
            [1, 1],
          ],
          table,
        )
      ).toArray(),
    ).toEqual([
      [
        [5, 6],
        [1, 2],
      ],
      [
        [3, 4],
        [3, 4],
      ],
    ]);
    expect(engine.embeddingSync(Int32Array.of(1), table).toArray()).toEqual([[3, 4]]);
  });

  test('positional encoding, odd widths too', async () => {
    const even = await engine.positionalEncoding(2, 4);
    expectClose(even, [0, 1, 0, 1, 0.841471, 0.5403023, 0.0099998, 0.99995], byHand);
    const odd = engine.positionalEncodingSync(2, 5).toArray()[1];
    expectClose(odd, [0.841471, 0.5403023, 0.0251162, 0.9996845, 0.000631], byHand);
  });

  test.each([
    [
      'another width',
      () => engine.linear(tensor([[1, 2]]), [[1], [2], [3]]),
      'INVALID_SHAPE',
      /kernel.*2.*\[3,1\]/,
    ],
    [
      'a bias of another width',
      () => engine.linear(tensor([[1]]), [[1, 2]], [1]),
      'INVALID_SHAPE',
      /bias.*\[2\].*\[1\]/,
    ],
    [
      'an id past the table',
      () => engine.embedding([0, 3], [[1], [2], [3]]),
      'INVALID_VALUE',
      /ids\[1\].*3/,
    ],
    ['a fractional id', () => engine.embedding([0.5], [[1]]), 'INVALID_VALUE', /ids\[0\].*0\.5/],
    [
      'floats as ids',
      () => engine.embedding(Float32Array.of(1), [[1]]),
      'INVALID_TYPE',
      /ids.*Float32Array/,
    ],
    ['a flat table', () => engine.embedding([0], [1, 2]), 'INVALID_SHAPE', /table/],
    ['a negative length', () => engine.positionalEncoding(-1, 4), 'INVALID_VALUE', /length.*-1/],
    [
      'more than can be',
      () => engine.positionalEncoding(2 ** 30, 2 ** 20),
      'OUT_OF_MEMORY',
      /bytes/,
    ],
  ])('%s is refused', async (_, call, code, message) => {
    const error = await errorOf(call);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    await expectWorks(engine);
  });
});
