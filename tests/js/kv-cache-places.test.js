// Tests: the cache beyond appending: reading without new tokens, rings that give tokens back, positions of drafts, tokens taken out
// of the middle, sink tokens turned as in the cache; what each refuses.
import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf } from './support/known.js';
import { plainAttention } from './support/plain-attention.js';
import { plainFrequency, plainRotary } from './support/plain-rotary.js';
import { randomTensor } from './support/random.js';
import { cached, cachedFloat16, cachedInt8, otherFloat32 } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

const tolerances = { f32: cached, f16: cachedFloat16, int8: cachedInt8 };

/** Rows `list` of [B,H,L,D]. */
function rowsOf({ data, shape: [b, h, l, d] }, list) {
  const out = new Float32Array(b * h * list.length * d);
  for (let head = 0; head < b * h; head++)
    list.forEach((row, n) => {
      const from = (head * l + row) * d;
      out.set(data.subarray(from, from + d), (head * list.length + n) * d);
    });
  return { data: out, shape: [b, h, list.length, d] };
}
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

/** [B,H,L,D], each row turned by its position: one list of positions, or one a batch row. */
function turned(x, positions, { base = 10000, dim = x.shape[3] } = {}) {
  const positionOf = (b, l) => (Array.isArray(positions[0]) ? positions[b][l] : positions[l]);
  return {
    data: plainRotary(x, positionOf, plainFrequency(base, dim), { dim }),
    shape: x.shape,
  };
}

describe('reading without new tokens', () => {
  const [B, H, G, S, D, Dv] = [2, 4, 2, 37, 8, 6];
  const k = randomTensor([B, G, S, D], 1);
  const v = randomTensor([B, G, S, Dv], 2);
  const config = { batch: B, numKvHeads: G, headDim: D, valueHeadDim: Dv, capacity: S + 3 };
  const filled = (extra, lengths = [S, S - 9]) => {
    const cache = engine.createKVCache({ ...config, ...extra });
    cache.appendSync(k, v, { lengths });
    return cache;
  };
  const q = (rows) => randomTensor([B, H, rows, D], 3);

  test.each([1, 3, 70])('%i queries, as cross-attention', async (rows) => {
    for (const dtype of ['f32', 'f16', 'int8']) {
      const cache = filled({ dtype });
      const kvLengths = [S, S - 9];
      const expected = plainAttention(q(rows), k, v, { kvLengths });
      const result = await cache.attend(q(rows), undefined, undefined, { returnLogSumExp: true });
      expectClose(result.output, expected.output, tolerances[dtype]);
      if (dtype === 'f32') expectClose(result.logSumExp, expected.logSumExp, otherFloat32);
      expectSame(cache.attendSync(q(rows)).output, result.output);
      expect(cache.lengths).toEqual(kvLengths);
      cache.dispose();
    }
  });

  test.each([
    [{ causal: true }],
    [{ causal: true, window: [4, 0], alibiSlopes: [0.5, 0.25, 0.1, 0] }],
    [{ window: [3, 2] }],
    [{ softcap: 2, sinks: [0, 1, -1, 2] }],
    [{ bias: randomTensor([H, 5, S], 4) }],
    [
      {
        mask: {
          data: Uint8Array.from({ length: 5 * S }, (_, i) => Number(i % 3 > 0)),
          shape: [5, S],
        },
      },
    ],
    [
      {
        keyPaddingMask: {
          data: Uint8Array.from({ length: B * S }, (_, i) => Number(i % 5 > 0)),
          shape: [B, S],
        },
      },
    ],
    [{ causal: true, qLengths: [2, 5] }],
  ])('%j', ({ qLengths, ...options }) => {
    const cache = filled();
    const given = qLengths === undefined ? options : { ...options, lengths: qLengths };
    const result = cache.attendSync(q(5), undefined, undefined, {
      ...given,
      returnWeights: true,
      returnLogSumExp: true,
      returnScores: 'masked',
    });
    const expected = plainAttention(q(5), k, v, { ...options, qLengths, kvLengths: [S, S - 9] });
    for (const name of ['output', 'weights', 'logSumExp'])
      expectClose(result[name], expected[name], otherFloat32, name);
    expect(result.scores.shape).toEqual([B, H, 5, S]);
    cache.dispose();
  });

  test('queries of a cache with rope stand at the text’s end, or where they are told to', () => {
    const cache = filled({ rope: { base: 100, dim: 6 } }, [S, S]);
    const rope = { base: 100, dim: 6 };
    const keys = turned(k, range(0, S), rope);
    const atEnd = plainAttention(turned(q(4), range(S - 4, S), rope), keys, v, { causal: true });
    const { output } = cache.attendSync(q(4), undefined, undefined, { causal: true });
    expectClose(output, atEnd.output, cached);
    const positions = [
      [3, 50, 0, 7],
      [1, 1, 2, 40],
    ];
    const told = cache.attendSync(q(4), undefined, undefined, { positions }).output;
    expectClose(told, plainAttention(turned(q(4), positions, rope), keys, v).output, cached);
    cache.dispose();
  });

  test('an empty cache gives zeros; a step goes on as if nothing had been read', () => {
    const cache = engine.createKVCache(config);
    expect(cache.attendSync(q(2)).output.data.every((x) => x === 0)).toBe(true);
    const other = engine.createKVCache(config);
    for (const each of [cache, other]) each.appendSync(k, v, { lengths: [5, 6] });
    cache.attendSync(q(2));
    const step = [q(1), randomTensor([B, G, 1, D], 5), randomTensor([B, G, 1, Dv], 6)];
    expectSame(cache.attendSync(...step).output, other.attendSync(...step).output);
    for (const each of [cache, other]) each.dispose();
  });

  test('one of keys and values alone, more queries than a row has, and other sizes are refused', async () => {
    const cache = filled();
    const code = async (...call) => (await errorOf(() => cache.attend(...call))).code;
    expect(await code(q(1), randomTensor([B, G, 1, D], 1))).toBe('INVALID_TYPE');
    expect(await code(q(1), undefined, randomTensor([B, G, 1, Dv], 1))).toBe('INVALID_TYPE');
    expect(await code(randomTensor([B, H, 1, D + 1], 1))).toBe('INVALID_SHAPE');
    expect(await code(randomTensor([B + 1, H, 1, D], 1))).toBe('INVALID_SHAPE');
    expect(await code(q(1), undefined, undefined, { positions: [1] })).toBe('INVALID_VALUE');
    expect(await code(q(1), undefined, undefined, { lengths: [2, 1] })).toBe('INVALID_VALUE');
    expect(cache.lengths).toEqual([S, S - 9]);
    cache.dispose();
  });

  test('a ring is read by queries at its end, and refused where it has lost a key', async () => {
    const [window, sinkTokens] = [5, 2];
    const one = { batch: B, numKvHeads: G, headDim: D, valueHeadDim: Dv, window, sinkTokens };
    const cache = engine.createKVCache({ ...one, capacity: 10 });
    cache.appendSync(k, v);
    // Three more slots than the window: up to four queries.
    const mask = {
      data: Uint8Array.from({ length: 4 * S }, (_, n) => {
        const [at, j] = [S - 4 + Math.floor(n / S), n % S];
        return Number(j <= at && (j > at - window || j < sinkTokens));
      }),
      shape: [4, S],
    };
    expectClose(cache.attendSync(q(4)).output, plainAttention(q(4), k, v, { mask }).output, cached);
    const error = await errorOf(() => cache.attend(q(5)));
    expect(error.code).toBe('INVALID_SHAPE');
    expect(error.message).toMatch(/^q: fewer queries wanted/);
    expect(
      (await errorOf(() => cache.attend(q(1), undefined, undefined, { causal: false }))).code,
    ).toBe('INVALID_VALUE');
    cache.dispose();
  });
});

describe('a ring gives back what it has', () => {
  const keys = (n) => ({ data: new Float32Array(n), shape: [n, 1] });
  const values = (list) => ({ data: Float32Array.from(list), shape: [list.length, 1] });
  const feed = (cache, list) =>
    Array.from(cache.attendSync(keys(list.length), keys(list.length), values(list)).output.data);

  test.each([
    [4, 4, 0],
    [6, 4, 0],
    [12, 4, 0],
    [9, 4, 2],
  ])(
    'capacity %i, window %i, %i sinks: as a text without those tokens, or refused',
    (capacity, window, sinkTokens) => {
      const make = () =>
        engine.createKVCache({ numKvHeads: 1, headDim: 1, window, sinkTokens, capacity });
      const ring = capacity - sinkTokens;
      for (let length = 0; length <= 30; length++) {
        for (let rest = 0; rest <= length; rest++) {
          const cache = make();
          const text = range(1, length + 1);
          if (length > 0) feed(cache, text);
          const lost = length - ring; // places sinks … lost − 1
          const wanted = Math.max(rest - window, sinkTokens);
          const allowed = rest === length || rest <= sinkTokens || lost <= wanted;
          if (!allowed) {
            expect(() => cache.trimSync(rest)).toThrow(/^length: .*come round/);
            expect(cache.lengths).toEqual([length]);
          } else {
            cache.trimSync(rest);
            const other = make();
            if (rest > 0) feed(other, text.slice(0, rest));
            for (const more of [[91], [92, 93, 94, 95, 96], [97]])
              expect(feed(cache, more)).toEqual(feed(other, more));
            other.dispose();
          }
          cache.dispose();
        }
      }
    },
  );
});

describe('positions and tokens taken out', () => {
  const D = 8;
  const [P, nodes] = [5, 4]; // a prompt, and a tree: node 0, its children 1 and 2, and 3 below 1
  const parents = [-1, 0, 0, 1];
  const positions = [P, P + 1, P + 1, P + 2];
  const [k, v, q] = [1, 2, 3].map((seed) => randomTensor([1, 1, P + nodes + 3, D], seed));
  const path = (n) => (n < 0 ? [] : [...path(parents[n]), n]);
  const prompt = range(0, P);
  const drafts = range(P, P + nodes);
  const mask = {
    data: Uint8Array.from(
      parents.flatMap((_, n) => [
        ...prompt.map(() => 1),
        ...parents.map((__, m) => Number(path(n).includes(m))),
      ]),
    ),
    shape: [nodes, P + nodes],
  };
  const plainText = (rows) => {
    const at = range(0, rows.length);
    const [queries, keys] = [q, k].map((x) => turned(rowsOf(x, rows), at));
    return plainAttention(queries, keys, rowsOf(v, rows), { causal: true }).output;
  };
  const make = (extra) => {
    const cache = engine.createKVCache({
      numKvHeads: 1,
      headDim: D,
      capacity: 16,
      rope: {},
      ...extra,
    });
    cache.appendSync(rowsOf(k, prompt), rowsOf(v, prompt));
    return cache;
  };
  const branch = (cache, options = { mask, causal: false, positions }) =>
    cache.attendSync(rowsOf(q, drafts), rowsOf(k, drafts), rowsOf(v, drafts), options).output;

  test.each(['f32', 'f16', 'int8'])(
    'a tree of drafts in one call, and its branches accepted: %s',
    (dtype) => {
      const wanted = parents.flatMap((_, n) =>
        plainText([...prompt, ...path(n).map((m) => P + m)]).slice(-D),
      );
      for (const accepted of [0, 1, 2, 3]) {
        const cache = make({ dtype });
        expectClose(branch(cache), wanted, tolerances[dtype]);
        const kept = path(accepted);
        // From the last one on, so that places before them stay.
        for (let n = nodes - 1; n >= 0; n--)
          if (!kept.includes(n)) cache.dropSync(P + n, P + n + 1);
        expect(cache.lengths).toEqual([P + kept.length]);
        const rows = [...prompt, ...kept.map((m) => P + m), P + nodes, P + nodes + 1];
        const next = [P + nodes, P + nodes + 1];
        const { output } = cache.attendSync(rowsOf(q, next), rowsOf(k, next), rowsOf(v, next));
        expectClose(output, plainText(rows).slice(-2 * D), tolerances[dtype]);
        cache.dispose();
      }
    },
  );

  test('keys keep their turn when others go, and new positions follow the last', async () => {
    const cache = make();
    await cache.drop(1, 3);
    expect(cache.lengths).toEqual([3]);
    const [row] = [P];
    const { output } = await cache.attend(rowsOf(q, [row]), rowsOf(k, [row]), rowsOf(v, [row]));
    const rows = [0, 3, 4, 5];
    const keys = turned(rowsOf(k, rows), rows);
    const query = turned(rowsOf(q, [row]), [5]);
    expectClose(output, plainAttention(query, keys, rowsOf(v, rows)).output, cached);
    cache.dispose();
  });

  test('each row loses what it has there, or its own', () => {
    const cache = engine.createKVCache({ batch: 2, numKvHeads: 1, headDim: D, capacity: 8 });
    const [keys, values] = [7, 8].map((seed) => randomTensor([2, 1, 6, D], seed));
    cache.appendSync(keys, values, { lengths: [6, 3] });
    cache.dropSync(2, 5);
    expect(cache.lengths).toEqual([3, 2]);
    cache.dropSync([0, 1], [0, 2]);
    expect(cache.lengths).toEqual([3, 1]);
    const query = randomTensor([2, 1, 1, D], 9);
    const { output } = cache.attendSync(query);
    [[0, 1, 5], [0]].forEach((rows, b) => {
      const ofRow = (x) => ({
        data: x.data.slice(b * x.shape[2] * D, (b + 1) * x.shape[2] * D),
        shape: [1, 1, x.shape[2], D],
      });
      const expected = plainAttention(
        ofRow(query),
        rowsOf(ofRow(keys), rows),
        rowsOf(ofRow(values), rows),
      );
      expectClose(output.data.slice(b * D, (b + 1) * D), expected.output, cached);
    });
    cache.dispose();
  });

  test('what cannot be is refused before anything changes', async () => {
    const cache = make();
    const failure = async (call) => {
      const { code, message } = await errorOf(call);
      return `${code} ${message.slice(0, message.indexOf(':'))}`;
    };
    for (const [call, expected] of [
      [() => cache.drop(-1, 2), 'INVALID_VALUE begin'],
      [() => cache.drop(6, 6), 'INVALID_VALUE begin'],
      [() => cache.drop(3, 2), 'INVALID_VALUE end'],
      [() => cache.drop(0, 6), 'INVALID_VALUE end'],
      [() => cache.drop(0.5, 1), 'INVALID_VALUE begin'],
      [() => cache.drop('0', 1), 'INVALID_TYPE begin'],
      [() => cache.drop(0), 'INVALID_TYPE end'],
      [() => cache.drop([0, 1], [1, 1]), 'INVALID_SHAPE begin'],
      [() => cache.drop([2], [1]), 'INVALID_VALUE end[0]'],
      [() => branch(cache, { positions: [1, 2, 3] }), 'INVALID_SHAPE positions'],
      [() => branch(cache, { positions: [1, 2, 3, 2 ** 31] }), 'INVALID_VALUE positions[3]'],
      [() => branch(cache, { positions: [1, 2, 3, 0.5] }), 'INVALID_VALUE positions[3]'],
    ]) {
      expect(await failure(call)).toBe(expected);
      expect(cache.lengths).toEqual([P]);
    }
    const plain = engine.createKVCache({ numKvHeads: 1, headDim: D, capacity: 16 });
    expect(await failure(() => branch(plain, { positions }))).toBe('INVALID_VALUE positions');
    // A ring that has come round has lost what would move up.
    const ring = engine.createKVCache({ numKvHeads: 1, headDim: D, window: 3, capacity: 6 });
    ring.appendSync(randomTensor([1, 1, 9, D], 1), randomTensor([1, 1, 9, D], 2));
    expect(await failure(() => ring.drop(2, 3))).toBe('INVALID_VALUE begin');
    expect(ring.lengths).toEqual([9]);
    await ring.drop(6, 9); // what a trim is
    expect(ring.lengths).toEqual([6]);
    for (const each of [cache, plain, ring]) each.dispose();
    expect(await failure(() => ring.drop(0, 1))).toMatch(/^DISPOSED/);
  });

  test('calls made one after another without waiting take effect in their order', async () => {
    const cache = make();
    const step = (row) => [q, k, v].map((x) => rowsOf(x, [row]));
    const pending = [cache.attend(...step(P)), cache.drop(1, 3), cache.attend(...step(P + 1))];
    expect(cache.lengths).toEqual([P - 2 + 2]);
    const begins = Int32Array.of(0);
    const dropping = cache.drop(begins, [1]);
    begins[0] = 2; // it has been read
    await Promise.all([...pending, dropping]);
    const rows = [3, 4, P, P + 1];
    const keys = turned(rowsOf(k, rows), rows);
    const query = turned(rowsOf(q, [P]), [P + 1]);
    const { output } = await cache.attend(rowsOf(q, [P]));
    expectClose(output, plainAttention(query, keys, rowsOf(v, rows)).output, cached);
    cache.dispose();
  });
});

describe("sinkPositions: 'cache'", () => {
  const [G, H, D, T] = [2, 4, 8, 40];
  const rope = { base: 30, dim: 6 };
  const [q, k, v] = [H, G, G].map((heads, n) => randomTensor([1, heads, T, D], n + 1));

  // Positions in the cache, as StreamingLLM has them: the kept tokens are numbered from 0 for each query anew.
  const expected = (window, sinkTokens, options) =>
    range(0, T).map((t) => {
      const kept = range(0, t + 1).filter((j) => j < sinkTokens || j > t - window);
      const keys = turned(rowsOf(k, kept), range(0, kept.length), rope);
      const query = turned(rowsOf(q, [t]), [kept.length - 1], rope);
      return plainAttention(query, keys, rowsOf(v, kept), options);
    });

  test.each([
    ['steps', Array(T).fill(1), 'f32'],
    ['at once', [T], 'f32'],
    ['chunks', [3, 17, 1, 19], 'f32'],
    ['chunks', [3, 17, 1, 19], 'f16'],
    ['steps', Array(T).fill(1), 'int8'],
  ])('%s of %j, %s', (_name, chunks, dtype) => {
    for (const [window, sinkTokens, spare] of [
      [5, 2, 0],
      [1, 1, 3],
      [12, 4, 9],
    ]) {
      const config = { numKvHeads: G, headDim: D, window, sinkTokens, dtype, rope };
      const capacity = window + sinkTokens + spare;
      const cache = engine.createKVCache({ ...config, capacity, sinkPositions: 'cache' });
      const sinks = [0.5, -1, 2, 0];
      const wanted = expected(window, sinkTokens, { softcap: 3, sinks });
      let at = 0;
      for (const count of chunks) {
        const rows = range(at, at + count);
        const result = cache.attendSync(...[q, k, v].map((x) => rowsOf(x, rows)), {
          softcap: 3,
          sinks,
          returnLogSumExp: true,
        });
        rows.forEach((t, n) => {
          for (let h = 0; h < H; h++) {
            const place = (h * count + n) * D;
            const got = result.output.data.slice(place, place + D);
            expectClose(got, wanted[t].output.slice(h * D, (h + 1) * D), tolerances[dtype]);
            if (dtype !== 'f32') continue;
            expectClose(
              [result.logSumExp.data[h * count + n]],
              [wanted[t].logSumExp[h]],
              otherFloat32,
            );
          }
        });
        at += count;
      }
      // It also reads so, and without a log-sum-exp.
      const { output } = cache.attendSync(rowsOf(q, [T - 1]), undefined, undefined, {
        softcap: 3,
        sinks,
      });
      expectClose(output, wanted[T - 1].output, tolerances[dtype]);
      cache.dispose();
    }
  });

  test('is refused where it means nothing', async () => {
    const config = { numKvHeads: 1, headDim: 4, window: 3 };
    for (const extra of [{ sinkTokens: 1 }, { rope: {} }, { sinkTokens: 0, rope: {} }]) {
      const make = () => engine.createKVCache({ ...config, ...extra, sinkPositions: 'cache' });
      expect(make).toThrow(/^sinkPositions/);
    }
    expect(() => engine.createKVCache({ ...config, sinkPositions: 'ring' })).toThrow(
      /^sinkPositions/,
    );
    const cache = engine.createKVCache({
      ...config,
      sinkTokens: 1,
      rope: {},
      sinkPositions: 'cache',
    });
    const x = randomTensor([1, 4], 1);
    for (const options of [{ alibiSlopes: [1] }, { dropout: { rate: 0.5, seed: 1 } }]) {
      const error = await errorOf(() => cache.attend(x, x, x, options));
      expect(error.message).toMatch(/sinkPositions 'cache'/);
      expect(error.code).toBe('INVALID_VALUE');
    }
    cache.dispose();
  });
});
