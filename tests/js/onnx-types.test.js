// Tests: headwise/onnx: element types in and out, 16-bit floats to the bit, and wrong arguments.

import { createEngine, tensor } from 'headwise';
import * as onnx from 'headwise/onnx';
import { fromFloat16, numbersOf } from './conformance/read.js';
import { errorOf } from './support/known.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
});
afterAll(() => engine.dispose());

const native = globalThis.Float16Array;
afterEach(() => {
  globalThis.Float16Array = native;
});

const float = (data, dims, Type = Float32Array) => ({ data: Type.from(data), dims });
const bits = (data, dims, type = 'float16') => ({ data: Uint16Array.from(data), dims, type });

/** What passes unchanged: a rotation by nothing. */
function same(X) {
  const none = { data: new X.data.constructor(X.dims[2] / 2), dims: [1, 1, X.dims[2] / 2] };
  const one = { ...none, data: none.data.slice().fill(X.one) };
  const tables = { cos_cache: { ...one, type: X.type }, sin_cache: { ...none, type: X.type } };
  return onnx.rotaryEmbedding(
    { X: { type: X.type, data: X.data, dims: X.dims }, ...tables },
    { num_heads: 1 },
  ).Y;
}

// Not NaN, whose bits need not survive, nor infinity, which times 0 is NaN.
const finite = (exponent) => (_, i) => ((i & exponent) === exponent ? i & 0x8000 : i);

describe('16-bit floats', () => {
  test('every float16 comes back, as bits where the runtime has no Float16Array', () => {
    globalThis.Float16Array = undefined;
    const data = Uint16Array.from({ length: 65536 }, finite(0x7c00));
    const { type, data: back, dims } = same({ ...bits(data, [1, 1, 65536]), one: 0x3c00 });
    expect([type, dims]).toEqual(['float16', [1, 1, 65536]]);
    expect(Object.prototype.toString.call(back)).toBe('[object Uint16Array]');
    expect(back.findIndex((b, i) => fromFloat16(b) !== fromFloat16(data[i]))).toBe(-1);
  });

  test('every bfloat16 comes back', () => {
    const data = Uint16Array.from({ length: 65536 }, finite(0x7f80));
    const { type, data: back } = same({ ...bits(data, [1, 1, 65536], 'bfloat16'), one: 0x3f80 });
    expect(type).toBe('bfloat16');
    expect(back.findIndex((b, i) => b !== data[i] && (b | data[i]) !== 0x8000)).toBe(-1);
  });

  // A mean of one number is that number, rounded once to the stash type.
  const rounded = (x, stash_type) => {
    const inputs = { X: float([x], [1, 1], Float64Array), Scale: float([1], [1], Float64Array) };
    return onnx.layerNormalization(inputs, { stash_type }).Mean.data[0];
  };

  test.each([
    [1 + 2 ** -11, 0x3c00], // a tie goes to the even one
    [1 + 3 * 2 ** -11, 0x3c02],
    [1 + 2 ** -11 + 2 ** -40, 0x3c01], // in float32 this would be a tie
    [65519.99, 0x7bff],
    [65520, 0x7c00],
    [-Infinity, 0xfc00],
    [2 ** -24, 1],
    [2 ** -25, 0],
    [2 ** -25 + 2 ** -60, 1],
    [2 ** -14 - 2 ** -25, 0x0400], // up into the normal numbers
    [2 - 2 ** -12, 0x4000], // carries into the exponent
    [NaN, 0x7e00],
    [-0.5, 0xb800],
  ])('%p rounds to float16 %p', (x, wanted) => {
    globalThis.Float16Array = undefined;
    expect(rounded(x, 10)).toBe(wanted);
  });

  test.each([
    [1 + 2 ** -8, 0x3f80],
    [1 + 3 * 2 ** -8, 0x3f82],
    [1 + 2 ** -8 + 2 ** -40, 0x3f81],
    [-3, 0xc040],
    [3.4e38, 0x7f80],
    [2 ** -133, 1],
    [NaN, 0x7fc0],
  ])('%p rounds to bfloat16 %p', (x, wanted) => expect(rounded(x, 16)).toBe(wanted));

  test('attention of float16 is of float16, the caches and scores as well', async () => {
    const x = bits([0x3c00, 0x4000, 0x3800, 0xbc00], [1, 1, 2, 2]);
    const past = bits([0x3555, 0x2e66], [1, 1, 1, 2]); // 0.3333, 0.1: not exact in decimals
    const outputs = ['Y', 'present_key', 'present_value', 'qk_matmul_output'];
    const inputs = { Q: x, K: x, V: x, past_key: past, past_value: past };
    const results = await onnx.attention(engine, inputs, {}, { outputs });
    for (const name of outputs) {
      expect(results[name].type).toBe('float16');
      expect(Object.prototype.toString.call(results[name].data)).toBe(
        native ? '[object Float16Array]' : '[object Uint16Array]',
      );
    }
    const wanted = [0x3555, 0x2e66, ...x.data].map(fromFloat16);
    expect(numbersOf(results.present_key)).toEqual(wanted);
    // What comes out goes in again.
    const { present_key: K, present_value: V } = results;
    expect((await onnx.attention(engine, { Q: x, K, V })).Y.dims).toEqual([1, 1, 2, 2]);
  });
});

test('float64 stays float64; a present holds the very numbers', async () => {
  const x = float([0.1, 0.2, 0.3, 0.4], [1, 1, 2, 2], Float64Array);
  const options = { outputs: ['Y', 'present_key'] };
  const { Y, present_key } = await onnx.attention(engine, { Q: x, K: x, V: x }, {}, options);
  expect([Y.type, present_key.type]).toEqual(['float64', 'float64']);
  expect(Array.from(present_key.data)).toEqual(Array.from(x.data));
  present_key.data[0] = 5;
  expect(x.data[0]).toBe(0.1);
});

test('tensors of this package and of onnxruntime-web pass straight through', async () => {
  const ours = tensor([[[[1, 0]]]]);
  const theirs = { type: 'float32', data: new Float32Array([1, 0]), dims: [1, 1, 1, 2] };
  const { Y } = await onnx.attention(engine, { Q: ours, K: theirs, V: ours });
  expect([Y.dims, Y.shape, Array.from(Y.data)]).toEqual([
    [1, 1, 1, 2],
    [1, 1, 1, 2],
    [1, 0],
  ]);
});

describe('what is wrong is named', () => {
  const x = float([1, 0, 0, 1], [1, 1, 2, 2]);
  const qkv = { Q: x, K: x, V: x };
  const wide = float([1, 0, 0, 1], [1, 2, 2]);
  const attention = (...args) => onnx.attention(engine, ...args);
  const mha = (...args) => onnx.multiHeadAttention(engine, ...args);
  const gqa = (inputs, attributes) =>
    onnx.groupQueryAttention(
      engine,
      { query: wide, key: wide, value: wide, seqlens_k: [1], total_sequence_length: 2, ...inputs },
      { num_heads: 1, kv_num_heads: 1, ...attributes },
    );

  test.each([
    ['INVALID_TYPE', /^Q:/, () => attention({ ...qkv, Q: undefined })],
    [
      'INVALID_TYPE',
      /^Q: a Uint16Array needs type/,
      () => attention({ ...qkv, Q: { data: new Uint16Array(4), dims: [1, 1, 2, 2] } }),
    ],
    [
      'INVALID_TYPE',
      /^Q:.*Int32Array/,
      () => attention({ ...qkv, Q: { data: new Int32Array(4), dims: [1, 1, 2, 2] } }),
    ],
    ['INVALID_TYPE', /^Q:.*"float16"/, () => attention({ ...qkv, Q: { ...x, type: 'float16' } })],
    [
      'INVALID_TYPE',
      /^K: float32 like Q/,
      () => attention({ ...qkv, K: bits([1, 2, 3, 4], [1, 1, 2, 2]) }),
    ],
    [
      'INVALID_SHAPE',
      /^Q: shape \[1,1,2,3\]/,
      () => attention({ ...qkv, Q: { ...x, dims: [1, 1, 2, 3] } }),
    ],
    ['INVALID_SHAPE', /^q_num_heads: needed/, () => attention({ Q: wide, K: wide, V: wide })],
    ['INVALID_SHAPE', /^Q: q_num_heads = 2/, () => attention(qkv, { q_num_heads: 2 })],
    [
      'INVALID_SHAPE',
      /^V: length 2 like K/,
      () => attention({ ...qkv, V: float([1, 2], [1, 1, 1, 2]) }),
    ],
    [
      'INVALID_SHAPE',
      /^attn_mask: a last axis of at most 2/,
      () => attention({ ...qkv, attn_mask: float([1, 2, 3], [3]) }),
    ],
    [
      'INVALID_SHAPE',
      /^attn_mask: shape \[3,2\]/,
      () => attention({ ...qkv, attn_mask: float([1, 2, 3, 4, 5, 6], [3, 2]) }),
    ],
    ['INVALID_VALUE', /^past_value: needed/, () => attention({ ...qkv, past_key: x })],
    [
      'INVALID_SHAPE',
      /^past_key: .*like K/,
      () => attention({ ...qkv, past_key: float([1], [1, 1, 1, 1]), past_value: x }),
    ],
    [
      'INVALID_VALUE',
      /^nonpad_kv_seqlen: not together/,
      () => attention({ ...qkv, past_key: x, past_value: x, nonpad_kv_seqlen: [2] }),
    ],
    ['INVALID_VALUE', /^nonpad_kv_seqlen\[0\]/, () => attention({ ...qkv, nonpad_kv_seqlen: [3] })],
    [
      'INVALID_VALUE',
      /^nonpad_kv_seqlen.*32 bits/,
      () =>
        attention({
          ...qkv,
          nonpad_kv_seqlen: { data: new BigInt64Array([2n ** 40n]), dims: [1] },
        }),
    ],
    ['INVALID_VALUE', /^left_window_size/, () => attention(qkv, { left_window_size: -2 })],
    ['INVALID_VALUE', /^softmax_precision/, () => attention(qkv, { softmax_precision: 2 })],
    ['INVALID_VALUE', /^is_causal/, () => attention(qkv, { is_causal: 2 })],
    ['INVALID_VALUE', /unknown option "causal"/, () => attention(qkv, { causal: 1 })],
    [
      'INVALID_VALUE',
      /unknown option "attention_mask"/,
      () => attention({ ...qkv, attention_mask: x }),
    ],
    ['INVALID_VALUE', /^options.outputs\[0\]/, () => attention(qkv, {}, { outputs: ['present'] })],
    ['INVALID_TYPE', /^num_heads/, () => mha({ query: wide, key: wide, value: wide }, {})],
    [
      'INVALID_SHAPE',
      /^key_padding_mask/,
      () =>
        mha({ query: wide, key: wide, value: wide, key_padding_mask: [1, 1, 1] }, { num_heads: 1 }),
    ],
    [
      'INVALID_SHAPE',
      /^bias: shape \[6\]/,
      () => mha({ query: wide, key: wide, value: wide, bias: float([1], [1]) }, { num_heads: 1 }),
    ],
    ['INVALID_VALUE', /^value: needed/, () => mha({ query: wide, key: wide }, { num_heads: 1 })],
    ['INVALID_SHAPE', /^query: packed/, () => mha({ query: wide }, { num_heads: 1 })],
    [
      'UNSUPPORTED',
      /^cache_indirection/,
      () => mha({ query: wide, cache_indirection: x }, { num_heads: 1 }),
    ],
    ['INVALID_VALUE', /^seqlens_k\[0\]/, () => gqa({ seqlens_k: [2] })],
    [
      'INVALID_VALUE',
      /^past_key: 1 rows for batch 0/,
      () => gqa({ seqlens_k: [2], total_sequence_length: 3 }),
    ],
    ['INVALID_VALUE', /^total_sequence_length/, () => gqa({ total_sequence_length: 1 })],
    ['INVALID_VALUE', /^local_window_size/, () => gqa({}, { local_window_size: 0 })],
    ['INVALID_TYPE', /^cos_cache/, () => gqa({}, { do_rotary: 1 })],
    ['UNSUPPORTED', /^k_quant_type/, () => gqa({}, { k_quant_type: 'PER_TENSOR' })],
    [
      'INVALID_SHAPE',
      /^weights/,
      () =>
        onnx.microsoftAttention(
          engine,
          { input: wide, weights: float([1], [1, 1]) },
          { num_heads: 1 },
        ),
    ],
    [
      'INVALID_VALUE',
      /^position_ids\[1\]/,
      () =>
        onnx.rotaryEmbedding({
          X: x,
          cos_cache: float([1], [1, 1]),
          sin_cache: float([0], [1, 1]),
          position_ids: { data: [0, 1], dims: [1, 2] },
        }),
    ],
    ['INVALID_VALUE', /^axis/, () => onnx.softmax({ input: x }, { axis: 4 })],
    [
      'INVALID_SHAPE',
      /^Scale: shape \[3\]/,
      () => onnx.layerNormalization({ X: x, Scale: float([1, 2, 3], [3]) }),
    ],
    ['INVALID_VALUE', /^approximate/, () => onnx.gelu({ X: x }, { approximate: 'erf' })],
  ])('%s %p', async (code, message, call) => {
    const error = await errorOf(async () => call());
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
