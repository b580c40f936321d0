// Tests: every JavaScript snippet of MIGRATION.md is run as it stands, on the variables that the page speaks of, and what it
// computes is what the other library gave (fixtures) or what the plain formula in doubles gives.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createEngine, tensor } from 'headwise';
import * as onnx from 'headwise/onnx';
import { root, runModule } from './child.js';
import { expectClose } from './compare.js';
import { readFixtures } from './fixtures.js';
import { swapped } from './support/layouts.js';
import { plainAttention } from './support/plain-attention.js';
import { randomTensor } from './support/random.js';
import { otherFloat32, otherTraining } from './tolerances.js';

/** Heading → the snippet below it. */
function readSnippets() {
  const snippets = new Map();
  const page = readFileSync(join(root, 'MIGRATION.md'), 'utf8');
  for (const section of page.split(/^### /mu).slice(1)) {
    const heading = section.slice(0, section.indexOf('\n'));
    const blocks = [...section.matchAll(/^```js\n(.*?)^```$/gmsu)].map(([, code]) => code);
    if (blocks.length > 1) throw new Error(`${heading}: one snippet a heading wanted`);
    if (blocks.length === 1) snippets.set(heading, blocks[0]);
  }
  return snippets;
}

const snippets = readSnippets();
const AsyncFunction = (async () => {}).constructor;

/** Runs a snippet on variables; resolves to those that it declares and `names` lists. */
function run(code, variables, names) {
  const given = { engine, tensor, onnx, ...variables };
  return new AsyncFunction(...Object.keys(given), `${code}\nreturn { ${names} };`)(
    ...Object.values(given),
  );
}

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
});
afterAll(() => engine.dispose());

const fixtureOf = (group, name) => readFixtures(group).cases.find((c) => c.name === name);

const sdpa = (name, maskName) => () => {
  const { inputs, outputs } = fixtureOf('sdpa', name);
  const { q, k, v, attn_mask } = inputs;
  return { variables: { q, k, v, ...(maskName && { [maskName]: attn_mask }) }, outputs };
};
const torch = (name) => () => {
  const { inputs, weights, outputs } = fixtureOf('torch', name);
  return { variables: { ...inputs, stateDict: weights }, outputs };
};
function torchTransformer() {
  const { config, inputs, weights, outputs } = fixtureOf('training', 'encoder-decoder, every mask');
  const [{ source: src, target: tgt, labels }] = config.batches;
  const { src_mask, ...masks } = inputs;
  const [rows, ...sizes] = src_mask.shape; // [B·H,S,S]
  const split = [rows / config.model.numHeads, config.model.numHeads, ...sizes];
  const part = (inStack) =>
    Object.fromEntries(
      Object.entries(weights).filter(([name]) => /^(encoder|decoder)\./.test(name) === inStack),
    );
  return {
    variables: {
      ...{
        config: config.model,
        stateDict: part(true),
        otherWeights: part(false),
        src,
        tgt,
        labels,
      },
      ...{ ...masks, src_mask: { data: src_mask.data, shape: split } },
    },
    names: ['loss'],
    check: ({ loss }) => expectClose([loss], [outputs['adam.loss'].data[0]], otherTraining),
  };
}
const keras = (name) => () => {
  const { inputs, weights, outputs } = fixtureOf('keras', name);
  return { variables: { ...inputs, weightArrays: weights }, outputs };
};

/** Variables and the plain formula's output for q, k, v as `[B,H,L,D]`, given and expected with rows first. */
function plain(names, options) {
  const qkv = [
    randomTensor([2, 4, 3, 8], 1),
    randomTensor([2, 2, 6, 8], 2),
    randomTensor([2, 2, 6, 8], 3),
  ];
  const { output } = plainAttention(...qkv, options);
  const variables = Object.fromEntries(names.map((name, i) => [name, swapped(qkv[i])]));
  return { variables, outputs: { output: swapped({ data: output, shape: qkv[0].shape }) } };
}

const flat = ({ data, shape: [b, l, h, d] }) => ({ data, dims: [b, l, h * d], type: 'float32' });

function onnxAttention() {
  const { variables, outputs } = plain(['Q', 'K', 'V'], { causal: true, causalOffset: 0 });
  const { Q, K, V } = variables;
  // The whole of the keys as past (none) and new ones, with a mask that hides nothing.
  const none = { data: new Float32Array(0), dims: [2, 2, 0, 8] };
  const attn_mask = { type: 'bool', data: new Uint8Array(6).fill(1), dims: [6] };
  const weights = plainAttention(...[Q, K, V].map(swapped), {}).weights;
  return {
    variables: { Q: flat(Q), K: flat(K), V: flat(V), attn_mask, past_key: none, past_value: none },
    outputs: {
      Y: outputs.output,
      present_key: swapped(K),
      present_value: swapped(V),
      qk_matmul_output: { data: weights },
    },
  };
}

function multiHead() {
  const kvLengths = [4, 6];
  const qkv = [
    [3, 1],
    [6, 2],
    [6, 3],
  ].map(([l, seed]) => randomTensor([2, 4, l, 8], seed));
  const { output } = plainAttention(...qkv, { kvLengths });
  const [query, key, value] = qkv.map(swapped).map(flat);
  const bias = { data: new Float32Array(96), dims: [96] };
  // The bias moves the values, and with them the output, by one.
  bias.data.fill(1, 64);
  return {
    variables: {
      query,
      key,
      value,
      bias,
      key_padding_mask: { type: 'int32', data: Int32Array.from(kvLengths), dims: [2] },
    },
    outputs: { output: swapped({ data: output.map((x) => x + 1), shape: qkv[0].shape }) },
  };
}

function groupQuery() {
  const q = randomTensor([2, 4, 1, 8], 1);
  const [keys, values] = [randomTensor([2, 2, 6, 8], 2), randomTensor([2, 2, 6, 8], 3)];
  const cut = ({ data }, from, to) => ({
    data: Float32Array.from({ length: 4 * (to - from) * 8 }, (_, n) => {
      const [head, rest] = [Math.floor(n / ((to - from) * 8)), n % ((to - from) * 8)];
      return data[head * 48 + from * 8 + rest];
    }),
    shape: [2, 2, to - from, 8],
  });
  const past = (t) => ({ data: cut(t, 0, 5).data, dims: [2, 2, 5, 8] });
  const { output } = plainAttention(q, keys, values, {});
  return {
    variables: {
      query: flat(swapped(q)),
      key: flat(swapped(cut(keys, 5, 6))),
      value: flat(swapped(cut(values, 5, 6))),
      past_key: past(keys),
      past_value: past(values),
      seqlens_k: { type: 'int32', data: Int32Array.of(5, 5), dims: [2] },
      total_sequence_length: 6,
      // A turn by nothing, so that the plain formula says what comes out.
      cos_cache: { data: new Float32Array(24).fill(1), dims: [6, 4] },
      sin_cache: { data: new Float32Array(24), dims: [6, 4] },
    },
    outputs: { output: { data: output }, present_key: keys, present_value: values },
  };
}

function pointwise() {
  // Two rows of one token, four heads of two: a quarter turn swaps each pair and its sign.
  const X = { data: Float32Array.from({ length: 16 }, (_, i) => i), dims: [2, 1, 8] };
  const table = (x) => ({ data: Float32Array.of(x), dims: [1, 1] });
  const position_ids = { type: 'int64', data: new BigInt64Array(2), dims: [2, 1] };
  const scale = { data: new Float32Array(8).fill(1), dims: [8] };
  const bias = { data: new Float32Array(8), dims: [8] };
  const turned = [-1, 0, -3, 2, -5, 4, -7, 6];
  const mean = turned.reduce((a, b) => a + b) / 8;
  const deviation = Math.sqrt(turned.reduce((a, b) => a + (b - mean) ** 2, 0) / 8);
  return {
    variables: { X, cos_cache: table(0), sin_cache: table(1), position_ids, scale, bias },
    check({ turned: rotated, Y, output }) {
      expect(Array.from(rotated.data.slice(0, 8))).toEqual(turned);
      // RMS before the layer norm changes nothing but what epsilon does.
      const normed = turned.map((x) => (x - mean) / deviation);
      expectClose({ data: Y.data.slice(0, 8) }, normed, { absolute: 1e-4, relative: 0 });
      expect(output.data.slice(0, 8).reduce((a, b) => a + b)).toBeCloseTo(1, 5);
    },
    names: ['turned', 'Y', 'output'],
  };
}

const kvCache = () => {
  const lengths = [4, 6];
  const { variables, outputs } = plain(['q', 'k_cache', 'v_cache'], {
    causal: true,
    kvLengths: lengths,
  });
  return { variables: { ...variables, lengths }, outputs };
};

const kerasAttention = () => {
  const qkv = [randomTensor([2, 3, 8], 1), randomTensor([2, 6, 8], 2), randomTensor([2, 6, 8], 3)];
  const one = ({ data, shape: [b, l, d] }) => ({ data, shape: [b, 1, l, d] });
  const [query, key, value] = qkv;
  const { output } = plainAttention(...qkv.map(one), { scale: 1 });
  return { variables: { query, key, value }, outputs: { output: { data: output } } };
};

// torch.nn.MultiheadAttention by plain loops: projections, a key and a value of zeros behind the others, heads, projection.
function zeroAttention() {
  const [B, L, S, E, H] = [2, 3, 4, 12, 3];
  const stateDict = {
    in_proj_weight: randomTensor([3 * E, E], 1),
    in_proj_bias: randomTensor([3 * E], 2),
    'out_proj.weight': randomTensor([E, E], 3),
    'out_proj.bias': randomTensor([E], 4),
  };
  const [query, key, value] = [L, S, S].map((rows, i) => randomTensor([B, rows, E], 5 + i));
  const linear = (x, weight, bias, first) => {
    const data = [];
    for (let row = 0; row < x.length / E; row++) {
      for (let o = first; o < first + E; o++) {
        let sum = bias.data[o];
        for (let i = 0; i < E; i++) sum += x[row * E + i] * weight.data[o * E + i];
        data.push(sum);
      }
    }
    return data;
  };
  const heads = ({ data, shape: [, rows] }, part, zeros) => {
    const flatRows = linear(data, stateDict.in_proj_weight, stateDict.in_proj_bias, part * E);
    const [own, size] = [rows + zeros, E / H];
    const split = new Float64Array(B * H * own * size);
    flatRows.forEach((x, n) => {
      const [d, h] = [n % size, Math.floor(n / size) % H];
      const [i, b] = [Math.floor(n / E) % rows, Math.floor(n / E / rows)];
      split[((b * H + h) * own + i) * size + d] = x;
    });
    return { data: split, shape: [B, H, own, size] };
  };
  const plainOne = plainAttention(heads(query, 0, 0), heads(key, 1, 1), heads(value, 2, 1));
  const joined = swapped({ data: plainOne.output, shape: [B, H, L, E / H] }).data;
  const output = linear(joined, stateDict['out_proj.weight'], stateDict['out_proj.bias'], 0);
  const weights = plainOne.weights.filter((_, n) => n % (S + 1) < S);
  return {
    variables: { query, key, value, stateDict },
    outputs: { output: { data: output }, weights: { data: weights } },
  };
}

/** Heading → its variables, and what its results are. */
const known = {
  'F.scaled_dot_product_attention(q, k, v, attn_mask=mask)': sdpa('mask_bool_empty_row', 'mask'),
  'F.scaled_dot_product_attention(q, k, v, attn_mask=floats)': sdpa('mask_float', 'floats'),
  'F.scaled_dot_product_attention(q, k, v, is_causal=True)': sdpa('causal_more_keys'),
  'F.scaled_dot_product_attention(q, k, v, enable_gqa=True)': sdpa('grouped'),
  'nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)': torch('both_masks'),
  'nn.MultiheadAttention with attn_mask of [B·H, L, S]': torch('attn_mask_each_head'),
  'nn.MultiheadAttention(embed_dim, num_heads, add_zero_attn=True)': zeroAttention,
  'nn.Transformer and its masks': torchTransformer,
  'keras.layers.MultiHeadAttention(num_heads=2, key_dim=6)': keras('mha_attention_mask'),
  'keras.layers.MultiHeadAttention, use_causal_mask=True': keras('mha_causal_more_keys'),
  'keras.layers.Attention()': kerasAttention,
  'flash_attn_func(q, k, v, causal=True, window_size=(2, 0), softcap=5.0)': () =>
    plain(['q', 'k', 'v'], { causal: true, window: [2, 0], softcap: 5 }),
  'flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths, causal=True)': kvCache,
  Attention: onnxAttention,
  'com.microsoft MultiHeadAttention': multiHead,
  'com.microsoft GroupQueryAttention': groupQuery,
  'RotaryEmbedding, RMSNormalization, LayerNormalization, Gelu, Softmax': pointwise,
};

test('every snippet of the page is tested, and there are no other tests', () => {
  expect([...snippets.keys()]).toEqual(['Before all snippets', ...Object.keys(known)]);
});

test('the opening lines run as a module', async () => {
  const end =
    'console.log(JSON.stringify({ types: [typeof tensor, typeof onnx.attention] })); engine.dispose();';
  const report = await runModule(`${snippets.get('Before all snippets')}\n${end}`);
  expect(report.types).toEqual(['function', 'function']);
});

test.each(Object.entries(known))('%s', async (heading, prepare) => {
  const { variables, outputs, names, check } = prepare();
  const code = snippets.get(heading);
  const wanted =
    names ??
    Object.keys(outputs).filter((name) => new RegExp(`\\b${name}\\b[^;]*\\} = `, 'u').test(code));
  expect(wanted.length).toBeGreaterThan(0);
  const results = await run(code, variables, wanted);
  if (check) return check(results);
  for (const name of wanted) expectClose(results[name], outputs[name], otherFloat32, name);
});
