// Tests: headwise/onnx: the attention operators against engine.attention and against each other, beyond the other projects'
// cases: packing, masks by shape, caches of several lengths, rotation, sinks.

import { createEngine } from 'headwise';
import * as onnx from 'headwise/onnx';
import { expectClose, expectSame } from './compare.js';
import { swapped } from './support/layouts.js';
import { randomTensor } from './support/random.js';
import { otherFloat32 } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
});
afterAll(() => engine.dispose());

const as = ({ data }, shape) => ({ data, shape });
const slice = (x, from, to) => ({ data: x.data.slice(from, to), shape: [to - from] });

describe('multiHeadAttention', () => {
  const [B, L, S, H, D] = [2, 3, 5, 2, 4];
  const attributes = { num_heads: H };
  const query = randomTensor([B, L, H * D], 1);
  const key = randomTensor([B, S, H * D], 2);
  const value = randomTensor([B, S, H * D], 3);
  const bias = randomTensor([3 * H * D], 4);
  const run = (inputs, more, options) =>
    onnx.multiHeadAttention(engine, inputs, { ...attributes, ...more }, options);
  const packed = (...parts) => {
    const [batch, rows] = parts[0].shape;
    const data = Float32Array.from({ length: parts.length * parts[0].data.length }, (_, n) => {
      const [d, part, head] = [
        n % D,
        Math.floor(n / D) % parts.length,
        Math.floor(n / D / parts.length),
      ];
      return parts[part].data[head * D + d];
    });
    return { data, shape: [batch, rows, H, parts.length, D] };
  };

  test('packed q, k, v and packed k, v are what they are apart, with the bias', async () => {
    const [k, v] = [randomTensor([B, L, H * D], 5), randomTensor([B, L, H * D], 6)];
    const apart = await run({ query, key: k, value: v, bias });
    expectSame((await run({ query: packed(query, k, v), bias })).output, apart.output);
    const plain = await run({ query, key, value });
    expectSame((await run({ query, key: packed(key, value) })).output, plain.output);
  });

  test('keys and values of rank 4 have their bias already; the query gets its own', async () => {
    const options = { outputs: ['output', 'present_key', 'present_value'] };
    const whole = await run({ query, key, value, bias }, {}, options);
    const { present_key, present_value } = whole;
    const inputs = { query, key: present_key, value: present_value, bias };
    const again = await run(inputs, {}, options);
    expectClose(again.output, whole.output, otherFloat32);
    // A bias of the keys moves all scores of a row alike: only the keys themselves show it.
    expectSame(again.present_key, present_key);
  });

  test('a mask means the same in every shape', async () => {
    const lengths = [3, 5];
    const rows = lengths.flatMap((n) => Array.from({ length: S }, (_, j) => (j < n ? 1 : 0)));
    const cube = [0, 1].flatMap((b) => Array(L).fill(rows.slice(b * S, (b + 1) * S))).flat();
    const masks = [
      { data: Int32Array.from(lengths), dims: [B] },
      { data: Int32Array.from([...lengths, 0, 3, 6, 0, 5, 10]), dims: [3 * B + 2] },
      { data: Int32Array.from(rows), dims: [B, S] },
      { data: Int32Array.from(cube), dims: [B, L, S] },
    ];
    const results = [];
    for (const key_padding_mask of masks)
      results.push(await run({ query, key, value, key_padding_mask }));
    const options = { numHeads: H, kvLengths: lengths };
    const { output } = await engine.attention(query, key, value, options);
    for (const result of results) expectSame(result.output, output);
  });

  test('a row whose keys are all hidden is 0', async () => {
    const key_padding_mask = { data: new Int32Array(B * S), dims: [B, S] };
    const { output } = await run({ query, key, value, key_padding_mask });
    expect(output.data.every((x) => x === 0)).toBe(true);
  });

  test('unidirectional rows see the past and themselves; a mask of the new keys leaves the past visible', async () => {
    const [k, v] = [randomTensor([B, L, H * D], 5), randomTensor([B, L, H * D], 6)];
    const past = {
      past_key: randomTensor([B, H, 2, D], 7),
      past_value: randomTensor([B, H, 2, D], 8),
    };
    const inputs = { query, key: k, value: v, ...past };
    const { output, present_key, present_value } = await run(inputs, { unidirectional: 1 });
    expect(present_key.dims).toEqual([B, H, 5, D]);
    const q4 = swapped(as(query, [B, L, H, D]));
    const whole = await engine.attention(q4, present_key, present_value, { causal: true });
    expectSame(output, swapped(as(whole.output, [B, H, L, D])));

    const mask = { data: [1, 0, 1, 0, 1, 1], dims: [B, L] };
    const masked = await run({ ...inputs, key_padding_mask: mask });
    const keyPaddingMask = { data: Uint8Array.of(1, 1, 1, 0, 1, 1, 1, 0, 1, 1), shape: [B, 5] };
    const wanted = await engine.attention(q4, present_key, present_value, { keyPaddingMask });
    expectSame(masked.output, swapped(as(wanted.output, [B, H, L, D])));
  });
});

describe('attention', () => {
  const q = randomTensor([2, 4, 3, 4], 1);
  const k = randomTensor([2, 2, 5, 4], 2);
  const v = randomTensor([2, 2, 5, 6], 3);

  test('without a cache the first row sees the first key; with nonpad_kv_seqlen the last sees the last', async () => {
    const run = (inputs) =>
      onnx.attention(engine, { Q: q, K: k, V: v, ...inputs }, { is_causal: 1 });
    const topLeft = await engine.attention(q, k, v, { causal: true, causalOffset: 0 });
    expectSame((await run({})).Y, topLeft.output);
    const lengths = await engine.attention(q, k, v, { causal: true, kvLengths: [3, 5] });
    expectSame((await run({ nonpad_kv_seqlen: [3, 5] })).Y, lengths.output);
  });

  test('a mask shorter than the keys hides the rest, booleans and floats alike, one column as well', async () => {
    const run = async (attn_mask) =>
      (await onnx.attention(engine, { Q: q, K: k, V: v, attn_mask })).Y;
    const wanted = await engine.attention(q, k, v, { kvLengths: [3, 3] });
    expectClose(
      await run({ data: new Uint8Array(9).fill(1), dims: [3, 3] }),
      wanted.output,
      otherFloat32,
    );
    expectClose(await run({ data: new Float32Array(3), dims: [3] }), wanted.output, otherFloat32);
    const first = await engine.attention(q, k, v, { kvLengths: [1, 1] });
    expectClose(
      await run({ data: [[true], [true], [true]], dims: [3, 1] }),
      first.output,
      otherFloat32,
    );
  });

  test('only what is asked for comes back, and never the caller’s data', async () => {
    const call = (outputs) => onnx.attention(engine, { Q: q, K: k, V: v }, {}, { outputs });
    expect(Object.keys(await onnx.attention(engine, { Q: q, K: k, V: v }))).toEqual(['Y']);
    const { present_key, qk_matmul_output } = await call(['present_key', 'qk_matmul_output']);
    expectSame(present_key, k);
    expect(present_key.data).not.toBe(k.data);
    expect(qk_matmul_output.dims).toEqual([2, 4, 3, 5]);
  });

  test('a signal aborts', async () => {
    const signal = AbortSignal.abort();
    await expect(
      onnx.attention(engine, { Q: q, K: k, V: v }, {}, { signal }),
    ).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});

describe('groupQueryAttention', () => {
  const [B, H, G, D, T] = [2, 4, 2, 4, 7];
  const attributes = { num_heads: H, kv_num_heads: G };
  const x = {
    query: randomTensor([B, T, H * D], 1),
    key: randomTensor([B, T, G * D], 2),
    value: randomTensor([B, T, G * D], 3),
  };
  /** Tokens `from` to `to` of every batch. */
  const tokens = ({ data, shape: [batch, rows, width] }, from, to) => ({
    data: Float32Array.from({ length: batch * (to - from) * width }, (_, n) => {
      const [b, rest] = [Math.floor(n / (to - from) / width), n % ((to - from) * width)];
      return data[(b * rows + from) * width + rest];
    }),
    shape: [batch, to - from, width],
  });
  const part = (from, to) =>
    Object.fromEntries(Object.entries(x).map(([name, t]) => [name, tokens(t, from, to)]));
  const angles = Array.from({ length: T * 2 }, (_, n) => Math.floor(n / 2) * 10 ** -(n % 2));
  const tables = {
    cos_cache: { data: Float32Array.from(angles, Math.cos), dims: [T, 2] },
    sin_cache: { data: Float32Array.from(angles, Math.sin), dims: [T, 2] },
  };
  const run = (inputs, more) =>
    onnx.groupQueryAttention(engine, inputs, { ...attributes, ...more });
  const cut = { seqlens_k: [T - 1, T - 1], total_sequence_length: T };

  test.each([
    ['plain', {}, {}],
    ['with rotation', tables, { do_rotary: 1 }],
    ['with neighbouring pairs', tables, { do_rotary: 1, rotary_interleaved: 1 }],
    ['with a window', {}, { local_window_size: 3 }],
    ['with sinks', { head_sink: randomTensor([H], 9) }, { softcap: 2 }],
  ])(
    'a prompt, then token by token, is the whole sequence at once: %s',
    async (_, inputs, more) => {
      const whole = await run({ ...x, ...inputs, ...cut }, more);
      let state = await run(
        { ...part(0, 3), ...inputs, seqlens_k: [2, 2], total_sequence_length: 3 },
        more,
      );
      const outputs = [tokens(as(state.output, [B, 3, H * D]), 0, 3)];
      for (let t = 3; t < T; t++) {
        const past = { past_key: state.present_key, past_value: state.present_value };
        const lengths = { seqlens_k: [t, t], total_sequence_length: t + 1 };
        state = await run({ ...part(t, t + 1), ...inputs, ...past, ...lengths }, more);
        outputs.push(state.output);
      }
      const wanted = as(whole.output, [B, T, H * D]);
      expectClose(outputs[0], tokens(wanted, 0, 3), otherFloat32, 'prompt');
      outputs.slice(1).forEach((output, i) => {
        expectClose(output, tokens(wanted, 3 + i, 4 + i), otherFloat32, `token ${3 + i}`);
      });
      expectClose(state.present_key, whole.present_key, otherFloat32, 'keys');
    },
  );

  test('rotation is what rotaryEmbedding does to queries and keys', async () => {
    const turn = (t, heads) => {
      const position_ids = { data: [...Array(B * T).keys()].map((n) => n % T), dims: [B, T] };
      return onnx.rotaryEmbedding({ X: t, ...tables, position_ids }, { num_heads: heads }).Y;
    };
    const turned = { ...x, query: turn(x.query, H), key: turn(x.key, G) };
    const wanted = await run({ ...turned, ...cut });
    expectSame((await run({ ...x, ...tables, ...cut }, { do_rotary: 1 })).output, wanted.output);
  });

  test('position_ids: of a first prompt only the first counts, of later tokens each', async () => {
    const long = T + 3;
    const wide = (f) => ({
      data: Float32Array.from({ length: long * 2 }, (_, n) =>
        f(Math.floor(n / 2) * 0.1 ** (n % 2)),
      ),
      dims: [long, 2],
    });
    const longer = { cos_cache: wide(Math.cos), sin_cache: wide(Math.sin) };
    const at = (positions) => ({
      position_ids: { data: positions, dims: [B, positions.length / B] },
    });
    const turned = (t, heads, positions) =>
      onnx.rotaryEmbedding({ X: t, ...longer, ...at(positions) }, { num_heads: heads }).Y;
    // What stands behind the first is no row of consequence.
    const given = [3, ...Array.from({ length: B * T - 1 }, (_, n) => (n * 5) % T)];
    const counted = Array.from({ length: B * T }, (_, n) => 3 + (n % T));
    const prompt = await run({ ...x, ...longer, ...cut, ...at(given) }, { do_rotary: 1 });
    const [query, key] = [turned(x.query, H, counted), turned(x.key, G, counted)];
    const wanted = await run({ ...x, query, key, ...cut });
    expectSame(prompt.output, wanted.output);
    expectSame(prompt.present_key, wanted.present_key);

    const { present_key: past_key, present_value: past_value } = await run({
      ...part(0, 3),
      seqlens_k: [2, 2],
      total_sequence_length: 3,
    });
    const step = { past_key, past_value, seqlens_k: [4, 4], total_sequence_length: 5 };
    const free = [9, 2, 4, 7];
    const later = part(3, 5);
    const got = await run({ ...later, ...longer, ...step, ...at(free) }, { do_rotary: 1 });
    const apart = { query: turned(later.query, H, free), key: turned(later.key, G, free) };
    expectSame(got.output, (await run({ ...later, ...apart, ...step })).output);

    // The last row of the prompt would stand where the tables end.
    const beyond = [4, ...Array.from({ length: B * T - 1 }, () => 0)];
    await expect(
      run({ ...x, ...longer, ...cut, ...at(beyond) }, { do_rotary: 1 }),
    ).rejects.toMatchObject({
      code: 'INVALID_VALUE',
      message: expect.stringMatching(/position_ids/),
    });
  });

  test('a window counts the token itself', async () => {
    const { output } = await run({ ...x, ...cut }, { local_window_size: 2 });
    const options = { numHeads: H, numKvHeads: G, causal: true, window: [1, 0] };
    expectSame(output, (await engine.attention(x.query, x.key, x.value, options)).output);
  });

  test('batches of several lengths, in a cache that is longer', async () => {
    const past = {
      past_key: randomTensor([B, G, 9, D], 4),
      past_value: randomTensor([B, G, 9, D], 5),
    };
    const lengths = {
      seqlens_k: { data: Int32Array.of(2, 5), dims: [B, 1] },
      total_sequence_length: 6,
    };
    const { output, present_key, present_value } = await run({
      ...part(0, 1),
      ...past,
      ...lengths,
    });
    expect(present_key.dims).toEqual([B, G, 9, D]);
    const at = (b, g, j) =>
      slice(present_key, ((b * G + g) * 9 + j) * D, ((b * G + g) * 9 + j + 1) * D);
    expectSame(at(0, 1, 2), slice(x.key, D, 2 * D)); // the new token, behind two of the past
    expectSame(at(1, 0, 5), slice(x.key, T * G * D, T * G * D + D));
    expect(Array.from(at(0, 0, 3).data)).toEqual([0, 0, 0, 0]);
    const query = as(tokens(x.query, 0, 1), [B, H, 1, D]);
    const wanted = await engine.attention(query, present_key, present_value, { kvLengths: [3, 6] });
    expectSame(output, wanted.output);
  });

  test('a prompt padded on the right: each batch is causal from its first token, padding is not seen', async () => {
    const { output } = await run({ ...part(0, 4), seqlens_k: [1, 3], total_sequence_length: 4 });
    const [whole, short] = [part(0, 4), part(0, 2)];
    const attend = ({ query, key, value }) => {
      const options = { numHeads: H, numKvHeads: G, causal: true };
      return engine.attention(query, key, value, options);
    };
    const wanted = [await attend(short), await attend(whole)].map((result) => result.output);
    expectClose(slice(output, 0, 2 * H * D), slice(wanted[0], 0, 2 * H * D), otherFloat32);
    const second = slice(wanted[1], 4 * H * D, 8 * H * D);
    expectClose(slice(output, 4 * H * D, 8 * H * D), second, otherFloat32);
  });

  test('smooth_softmax is a head_sink of zeros, and head_sink is sinks', async () => {
    const zeros = { data: new Float32Array(H), dims: [H] };
    const sunk = await run({ ...x, ...cut, head_sink: zeros });
    expectSame((await run({ ...x, ...cut }, { smooth_softmax: 1 })).output, sunk.output);
    const plain = await run({ ...x, ...cut });
    expect(Array.from(plain.output.data)).not.toEqual(Array.from(sunk.output.data));
    const options = { numHeads: H, numKvHeads: G, causal: true, sinks: zeros.data };
    expectSame(sunk.output, (await engine.attention(x.query, x.key, x.value, options)).output);
  });

  test('output_qk is the weights or the masked scores, as wide as the total', async () => {
    const past = {
      past_key: randomTensor([B, G, 9, D], 4),
      past_value: randomTensor([B, G, 9, D], 5),
    };
    const lengths = { seqlens_k: [2, 5], total_sequence_length: 6 };
    const inputs = { ...part(0, 1), ...past, ...lengths };
    const call = (qk_output) =>
      onnx.groupQueryAttention(
        engine,
        inputs,
        { ...attributes, qk_output },
        { outputs: ['output_qk'] },
      );
    const weights = (await call(2)).output_qk;
    expect(weights.dims).toEqual([B, H, 1, 6]);
    for (let h = 0; h < B * H; h++) {
      expect(weights.data.slice(h * 6, h * 6 + 6).reduce((a, b) => a + b)).toBeCloseTo(1, 5);
    }
    const scores = (await call(1)).output_qk;
    expect(Array.from(scores.data.slice(3, 6))).toEqual([-Infinity, -Infinity, -Infinity]);
  });
});

describe('microsoftAttention', () => {
  const [B, L, E, H, D] = [2, 4, 6, 2, 3];
  const input = randomTensor([B, L, E], 1);
  const weights = randomTensor([E, 3 * H * D], 2);
  const bias = randomTensor([3 * H * D], 3);
  const run = (inputs, more) =>
    onnx.microsoftAttention(engine, { input, weights, bias, ...inputs }, { num_heads: H, ...more });
  const third = ({ data }, i) => ({
    data: Float32Array.from({ length: data.length / 3 }, (_, n) => {
      const [row, column] = [Math.floor(n / (H * D)), n % (H * D)];
      return data[row * 3 * H * D + i * H * D + column];
    }),
    shape: [B, L, H * D],
  });

  test('is linear, then attention; mask_index [2·B] gives ends, then beginnings', async () => {
    const projected = await engine.linear(input, weights, bias);
    const [q, k, v] = [0, 1, 2].map((i) => third(projected, i));
    const wanted = await engine.attention(q, k, v, { numHeads: H });
    expectSame((await run({})).output, wanted.output);
    const keyPaddingMask = { data: Uint8Array.of(0, 1, 1, 0, 1, 1, 1, 1), shape: [B, L] };
    const masked = await engine.attention(q, k, v, { numHeads: H, keyPaddingMask });
    expectSame((await run({ mask_index: [3, 4, 1, 0] })).output, masked.output);
  });

  test('with a past, one row sees it and what is before the row', async () => {
    const past = randomTensor([2, B, H, 2, D], 4);
    const { present } = await run({ past }, { unidirectional: 1 });
    expect(present.dims).toEqual([2, B, H, 6, D]);
    expectSame(slice(present, 0, 2 * D), slice(past, 0, 2 * D));
  });
});
