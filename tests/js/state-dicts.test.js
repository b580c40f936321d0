// Tests: state dicts of PyTorch's modules as files have them: with a prefix, without biases, in 16-bit floats; and refused ones leave
// the parameters as they were.

import { createEngine } from 'headwise';
import { expectSame } from './compare.js';
import { randomTensor } from './support/random.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 1 });
});
afterAll(() => engine.dispose());

// A float32's upper half is a bfloat16; the numbers are chosen so that neither type rounds them.
const numbers = [0, 1, -1, 0.5, -2, 1.5, -0.25, 3];
const float16 = [0, 0x3c00, 0xbc00, 0x3800, 0xc000, 0x3e00, 0xb400, 0x4200];
const bfloat16 = [0, 0x3f80, 0xbf80, 0x3f00, 0xc000, 0x3fc0, 0xbe80, 0x4040];
const pick = (from, shape, shift) => {
  const length = shape.reduce((a, b) => a * b, 1);
  return Array.from({ length }, (_, i) => from[(i * 5 + shift) % 8]);
};
const exact = (shape, shift) => ({ data: Float32Array.from(pick(numbers, shape, shift)), shape });
const bits = (type, shape, shift) => ({
  ...{ type, shape },
  data: Uint16Array.from(pick(type === 'float16' ? float16 : bfloat16, shape, shift)),
});

const layerShapes = {
  in_proj_weight: [12, 4],
  in_proj_bias: [12],
  'out_proj.weight': [4, 4],
  'out_proj.bias': [4],
};
const dictOf = (shapes, make) =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape], i) => [name, make(shape, i)]));
const prefixed = (dict, prefix) =>
  Object.fromEntries(Object.entries(dict).map(([name, tensor]) => [prefix + name, tensor]));
const expectState = (got, wanted) => {
  expect(Object.keys(got).sort()).toEqual(Object.keys(wanted).sort());
  for (const [name, tensor] of Object.entries(wanted)) expectSame(got[name], tensor, name);
};

describe('torch.nn.MultiheadAttention', () => {
  const dict = dictOf(layerShapes, exact);
  let mha;
  beforeEach(() => (mha = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 })));
  afterEach(() => mha.dispose());

  test.each(['float16', 'bfloat16'])('%s bits', async (type) => {
    await mha.loadTorch(dictOf(layerShapes, (shape, i) => bits(type, shape, i)));
    expectState(await mha.toTorch(), dict);
  });

  test('a prefix, among what others there are', async () => {
    const whole = {
      'layers.0.self_attn.in_proj_weight': randomTensor([12, 4], 1),
      ...prefixed(dict, 'layers.1.self_attn.'),
      'position_ids.of.no.interest': { data: new BigInt64Array(3), shape: [3] },
    };
    await mha.loadTorch(whole, { prefix: 'layers.1.self_attn.' });
    expectState(await mha.toTorch(), dict);
  });

  test.each([
    ['a prefix that is not told', prefixed(dict, 'self_attn.'), undefined, /"self_attn\."/],
    ['no such prefix', dict, { prefix: 'encoder.' }, /prefix.*"encoder\.".*in_proj_weight/],
    ['a prefix that is no string', dict, { prefix: 5 }, /prefix: a string wanted, got 5/],
    ['an unknown option', dict, { stack: 'encoder' }, /unknown option "stack"/],
    ['bits without a type', { ...dict, in_proj_bias: new Uint16Array(12) }, undefined, /Uint16/],
    [
      'bits of integers',
      { ...dict, in_proj_bias: { data: new Uint16Array(12), shape: [12], type: 'uint16' } },
      undefined,
      /in_proj_bias.*'bfloat16'.*"uint16"/,
    ],
    [
      'bits of another shape',
      { ...dict, in_proj_bias: bits('float16', [11], 0) },
      undefined,
      /in_proj_bias.*\[12\].*\[11\]/,
    ],
    ['no biases', { ...dict, in_proj_bias: undefined }, undefined, /in_proj_bias.*bias: false/],
  ])('refused: %s', async (_, given, options, message) => {
    const before = await mha.toTorch();
    await expect(mha.loadTorch(given, options)).rejects.toMatchObject({
      code: expect.stringMatching(/^INVALID_/),
      message: expect.stringMatching(message),
    });
    expectState(await mha.toTorch(), before);
  });
});

describe('torch.nn.Transformer', () => {
  let model;
  let names;
  let shapes;
  beforeEach(async () => {
    model = engine.transformer({
      ...{ kind: 'encoder-decoder', sourceVocabulary: 3, targetVocabulary: 3, embedDim: 4 },
      ...{ numHeads: 2, encoderLayers: 2, decoderLayers: 1, feedForwardDim: 4, finalNorm: true },
    });
    const weights = await model.getWeights();
    names = Object.keys(weights).filter((name) => /^(en|de)coder\./.test(name));
    shapes = Object.fromEntries(names.map((name) => [name, weights[name].shape]));
    // No bias begins as 0, so that one that is set to 0 is seen.
    await model.setWeights(dictOf(shapes, (shape, i) => randomTensor(shape, i + 1)));
  });
  afterEach(() => model.dispose());
  const stacks = async () => {
    const weights = await model.getWeights();
    return Object.fromEntries(names.map((name) => [name, weights[name]]));
  };

  test.each(['float16', 'bfloat16'])('%s bits', async (type) => {
    await model.loadTorch(dictOf(shapes, (shape, i) => bits(type, shape, i)));
    expectState(await stacks(), dictOf(shapes, exact));
    const named = { [names[0]]: bits(type, shapes[names[0]], 3) };
    await model.setWeights(named);
    expectSame((await stacks())[names[0]], exact(shapes[names[0]], 3));
  });

  test('a prefix, with and without a stack', async () => {
    const dict = dictOf(shapes, exact);
    const rest = { 'head.weight': { data: new Int32Array(2), shape: [2] } };
    await model.loadTorch({ ...prefixed(dict, 'module.'), ...rest }, { prefix: 'module.' });
    expectState(await stacks(), dict);
    const other = dictOf(shapes, (shape, i) => exact(shape, i + 1));
    const encoder = Object.entries(other).filter(([name]) => name.startsWith('encoder.'));
    const alone = Object.fromEntries(encoder.map(([name, x]) => [`trunk.${name.slice(8)}`, x]));
    await model.loadTorch({ ...alone, ...rest }, { stack: 'encoder', prefix: 'trunk.' });
    expectState(await stacks(), { ...dict, ...Object.fromEntries(encoder) });
  });

  test('bias=False: the biases are 0, those of a norm behind the stack where it has none', async () => {
    const dict = dictOf(shapes, exact);
    const without = Object.entries(dict).filter(([name]) => !name.endsWith('bias'));
    const zeros = dictOf(shapes, (shape, i) => {
      return names[i].endsWith('bias')
        ? { data: new Float32Array(shape[0]), shape }
        : exact(shape, i);
    });
    await model.loadTorch(Object.fromEntries(without));
    expectState(await stacks(), zeros);
    const norm = { 'encoder.norm.bias': randomTensor([4], 5) };
    await model.loadTorch({ ...Object.fromEntries(without), ...norm });
    expectState(await stacks(), { ...zeros, ...norm });
    // Of one stack alone, the other's biases stay.
    await model.loadTorch(dict);
    const decoder = without.filter(([name]) => name.startsWith('decoder.'));
    await model.loadTorch(
      Object.fromEntries(decoder.map(([name, x]) => [name.slice(8), x])),
      'decoder',
    );
    const kept = Object.entries(dict).filter(([name]) => name.startsWith('encoder.'));
    expectState(await stacks(), { ...zeros, ...Object.fromEntries(kept) });
  });

  test.each([
    ['one bias', (dict) => void delete dict['encoder.layers.1.linear1.bias'], /linear1\.bias is m/],
    ['nothing', (dict) => Object.keys(dict).forEach((name) => delete dict[name]), /is missing/],
    [
      'a weight, and all biases',
      (dict) => {
        for (const name of Object.keys(dict)) if (name.endsWith('bias')) delete dict[name];
        delete dict['encoder.layers.1.linear1.weight'];
      },
      /linear1\.weight is missing/,
    ],
  ])('refused: without %s', async (_, change, message) => {
    const before = await stacks();
    const dict = dictOf(shapes, exact);
    change(dict);
    await expect(model.loadTorch(dict)).rejects.toMatchObject({
      code: 'INVALID_VALUE',
      message: expect.stringMatching(message),
    });
    expectState(await stacks(), before);
  });

  test.each([
    [{ stack: 'both' }, 'INVALID_VALUE', /stack/],
    ['both', 'INVALID_VALUE', /stack/],
    [{ prefix: 'no.' }, 'INVALID_VALUE', /prefix.*"no\."/],
    [{ strict: false }, 'INVALID_VALUE', /strict/],
    [5, 'INVALID_TYPE', /options/],
  ])('refused: options %j', async (options, code, message) => {
    await expect(model.loadTorch(dictOf(shapes, exact), options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});
