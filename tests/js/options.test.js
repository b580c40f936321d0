// Tests: what follows from the table of attention's options: known names, fields of the core, the short cut of a call without
// options, and what cannot stand beside packed sequences or in a cache with a window (B6).

import { createEngine } from 'headwise';
import { isGiven, optionRows } from '../../dist/options/table.js';
import { readAttention } from '../../dist/validation/attention.js';
import { stagingOf } from '../../dist/wasm/arguments.js';
import { loadModule } from '../../dist/wasm/loader.js';
import { Struct } from '../../dist/wasm/struct.js';
import { layersSamples, samples } from './support/option-samples.js';
import { randomTensor } from './support/random.js';

let engine;
let layout;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
  const options = { threads: 1, variant: 'simd', maxMemoryBytes: 2 ** 28 };
  const { bindings } = await loadModule(options, undefined);
  layout = bindings.layout();
});
afterAll(() => engine.dispose());

const [q, k, v] = [3, 5, 5].map((rows, i) => randomTensor([1, 2, rows, 4], i));
const [x, y] = [3, 5].map((rows, i) => randomTensor([1, rows, 8], i));
const requestOf = (options) => readAttention(q, k, v, options).request;

/** What a request becomes: the struct's words, and the arrays that go in and out. */
function staged(request) {
  const struct = new Struct(layout, 'AttentionArgs');
  const { inputs, outputs, bytes } = stagingOf(request, struct, {});
  const words = new Int32Array(struct.size / 4);
  struct.write({ i32: words }, 0);
  return { words, inputs, outputs, bytes };
}

test('every option has a sample', () => {
  const settings = new Set(samples.map(({ setting }) => setting));
  expect([...settings].sort()).toEqual(optionRows.map(({ setting }) => setting).sort());
});

test.each(samples)('$name: validation knows it, and it becomes its setting alone', (sample) => {
  const request = requestOf(sample.options);
  const plain = requestOf({});
  for (const row of optionRows) {
    const { setting } = row;
    expect(isGiven(row, plain[setting])).toBe(false);
    // Packed sequences bring their lengths along.
    if (sample.setting === 'packed' && /Lengths$/.test(setting)) continue;
    expect([setting, isGiven(row, request[setting])]).toEqual([
      setting,
      setting === sample.setting,
    ]);
  }
  expect(Object.keys(request)).toEqual(Object.keys(plain));
});

test.each(layersSamples)(
  '$name: the layer knows it and has the same reader',
  async ({ options }) => {
    const layer = engine.multiHeadAttention({ embedDim: 8, numHeads: 2 });
    const [name] = Object.keys(options);
    if (name !== 'resident') await layer.forward(x, y, y, options); // resident needs a GPU
    const wrong = layer.forward(x, y, y, { [name]: Symbol('wrong') });
    await expect(wrong).rejects.toThrow(new RegExp(`^${name}`));
    await expect(engine.attention(q, k, v, { [name]: Symbol('wrong') })).rejects.toThrow(
      new RegExp(`^${name}`),
    );
    layer.dispose();
  },
);

test('a name without a row is no option', async () => {
  await expect(engine.attention(q, k, v, { softCap: 1 })).rejects.toThrow(/softCap/);
});

/** Where the results stay says nothing to the core; a slope, a seed … does. */
test.each(samples.filter(({ setting }) => setting !== 'resident'))(
  '$name: staged to fields that the core publishes',
  ({ setting, options }) => {
    expect(optionRows.find((row) => row.setting === setting).stage).toBeDefined();
    const plain = staged(requestOf({}));
    const made = staged(requestOf(options)); // throws where a field is not published
    const { fields } = layout.AttentionArgs;
    for (const { field } of [...made.inputs, ...made.outputs])
      expect(fields).toHaveProperty([field]);
    const says = ({ words, inputs, outputs }) =>
      JSON.stringify([[...words], inputs.map(({ field }) => field), outputs.map((o) => o.field)]);
    expect(says(made)).not.toBe(says(plain));
  },
);

/** What cpp/include/headwise/fields/attention_args.def says that each sample's numbers are. */
test.each(
  Object.entries({
    softcap: { softcap: 2 },
    bias: { 'bias_strides.column': 1, 'bias_strides.row': 0 },
    mask: { 'mask_strides.column': 1, mask_bits: 0 },
    'mask of bits': { 'mask_strides.column': 1, mask_bits: 1 },
    blockMask: { block_size: 2 },
    causal: { causal: 1 },
    window: { window_left: 1, window_right: 2 },
    dropout: { dropout_rate: 0.5, dropout_seed_low: 7, dropout_seed_high: 1 },
    returnWeights: { weight_head_count: 2 },
    'returnWeights of some heads': { weight_head_count: 1 },
    returnScores: { score_stage: 2 },
    'packed sequences': { 'log_sum_exp_strides.head': 3, 'log_sum_exp_strides.row': 1 },
  }),
)('%s: its numbers in the struct', (wanted, numbers) => {
  const { options } = samples.find(({ name }) => name === wanted);
  const { words } = staged(requestOf(options));
  const { fields } = layout.AttentionArgs;
  for (const [name, number] of Object.entries(numbers)) {
    const [offset, kind] = fields[name];
    const as = kind === 'f32' ? new Float32Array(words.buffer) : words;
    expect([name, as[offset / 4]]).toEqual([name, number]);
  }
});

test('a call without options: the short cut stages what the long way does', () => {
  const request = requestOf({});
  expect(request.isPlain).toBe(true);
  expect(staged(request)).toEqual(staged({ ...request, isPlain: false }));
  // Its words are not zeros alone: an open window is −1, −1.
  const { words } = staged(request);
  const [left] = layout.AttentionArgs.fields.window_left;
  expect(words[left / 4]).toBe(-1);
});

test.each(samples)('$name takes no short cut', ({ options }) => {
  expect(requestOf(options).isPlain).toBe(false);
});

const shared = samples.filter(({ setting }) => setting !== 'packed');

/** As the docstring of `cuSeqlensQ` says: masks, bias, lengths, weights and scores. */
const notPacked = new Set([
  ...['bias', 'mask', 'blockMask', 'keyPaddingMask', 'kvLengths', 'qLengths'],
  ...['weightHeads', 'scoreStage'],
]);

test.each(shared)('$name beside packed sequences', ({ setting, options }) => {
  const row = optionRows.find((each) => each.setting === setting);
  expect(row.packed).toBe(!notPacked.has(setting));
  const { cuSeqlensQ, cuSeqlensK } = samples.find((each) => each.setting === 'packed').options;
  const call = () => requestOf({ ...options, cuSeqlensQ, cuSeqlensK });
  if (row.packed) expect(isGiven(row, call()[setting])).toBe(true);
  else expect(call).toThrow(`${row.option}: not together with cuSeqlensQ and cuSeqlensK`);
});

/** As the docstring of `AttendOptions` says: masks, biases, weights and scores; and the window is the cache's. */
const notInRing = new Set([
  ...['bias', 'mask', 'blockMask', 'keyPaddingMask', 'window'],
  ...['weightHeads', 'scoreStage'],
]);
const cachesOwn = new Set(['kvLengths', 'qLengths', 'causalOffsets', 'resident']);

test.each(shared.filter(({ setting }) => !cachesOwn.has(setting)))(
  '$name in a cache with a window',
  async ({ setting, options }) => {
    const row = optionRows.find((each) => each.setting === setting);
    expect(row.ring).toBe(!notInRing.has(setting));
    const cache = engine.createKVCache({ numKvHeads: 2, headDim: 4, window: 8 });
    const step = cache.attend(randomTensor([1, 2, 5, 4], 1), k, v, options);
    if (row.ring) expect((await step).output.shape).toEqual([1, 2, 5, 4]);
    else await expect(step).rejects.toThrow(`${row.option}: not with a cache that has a window`);
    cache.dispose();
  },
);
