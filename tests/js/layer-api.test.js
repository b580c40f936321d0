// Tests: the layer's surface: weights in and out, Keras' and PyTorch's layouts, results, errors, life.

import { createEngine, tensor } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';
import { byHand } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

const sizes = {
  embedDim: 6,
  numHeads: 2,
  headDim: 4,
  valueHeadDim: 5,
  keyDim: 7,
  valueDim: 8,
  outputDim: 3,
};

test('weights have the documented shapes, and come back as they were set', async () => {
  const mha = engine.multiHeadAttention(sizes);
  const weights = await mha.getWeights();
  const shapes = Object.fromEntries(
    Object.entries(weights).map(([group, { kernel, bias }]) => [group, [kernel.shape, bias.shape]]),
  );
  expect(shapes).toEqual({
    query: [
      [6, 2, 4],
      [2, 4],
    ],
    key: [
      [7, 2, 4],
      [2, 4],
    ],
    value: [
      [8, 2, 5],
      [2, 5],
    ],
    output: [[2, 5, 3], [3]],
  });
  const set = { key: { kernel: randomTensor([7, 2, 4], 1) }, output: { bias: [1, 2, 3] } };
  await mha.setWeights(set);
  const after = await mha.getWeights();
  expectSame(after.key.kernel, set.key.kernel);
  expectSame(after.output.bias, [1, 2, 3]);
  expectSame(after.query.kernel, weights.query.kernel);
  await mha.setWeights(weights);
  expectSame((await mha.getWeights()).key.kernel, weights.key.kernel);
  mha.dispose();
});

test('the same seed gives the same start, another seed another', async () => {
  const kernelOf = async (seed) => {
    const mha = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, seed });
    const { query } = await mha.getWeights();
    mha.dispose();
    return Array.from(query.kernel.data);
  };
  expect(await kernelOf(7)).toEqual(await kernelOf(7));
  expect(await kernelOf(7)).not.toEqual(await kernelOf(8));
  expect(await kernelOf(7)).not.toEqual(await kernelOf(7 + 2 ** 32));
  expect(await kernelOf(undefined)).toEqual(await kernelOf(0));
});

// E = 4, H = 2, query and key kernels 0, value and output the identity: each row is the mean of the visible values.
async function meanLayer() {
  const mha = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, bias: false });
  const identity = [0, 1, 2, 3].map((r) => [0, 1, 2, 3].map((c) => (r === c ? 1 : 0)));
  const zero = identity.map((row) => row.map(() => 0));
  await mha.loadKeras([zero, zero, identity, identity]);
  return mha;
}

test('masking options, weights, averages and out', async () => {
  const mha = await meanLayer();
  const x = tensor([
    [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ],
  ]);
  const both = await mha.forward(x);
  expectClose(both.output, [3, 4, 5, 6, 3, 4, 5, 6], byHand);
  expect(both.weights).toBeUndefined();
  const causal = mha.forwardSync(x, undefined, undefined, { causal: true, returnWeights: true });
  expectClose(causal.output, [1, 2, 3, 4, 3, 4, 5, 6], byHand);
  expect(causal.weights.shape).toEqual([1, 2, 2, 2]);
  expectClose(causal.weights, [1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5], byHand);
  const averaged = await mha.forward(x, x, x, {
    mask: [
      [true, false],
      [true, true],
    ],
    averageWeights: true,
  });
  expect(averaged.weights.shape).toEqual([1, 2, 2]);
  expectClose(averaged.weights, [1, 0, 0.5, 0.5], byHand);
  const out = new Float32Array(8);
  expect((await mha.forward(x, x, x, { keyPaddingMask: [[true, false]], out })).output.data).toBe(
    out,
  );
  expectClose(out, [1, 2, 3, 4, 1, 2, 3, 4], byHand);
  const flat = await mha.forward(
    tensor([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ]),
  );
  expect(flat.output.shape).toEqual([2, 4]);
  expectSame(flat.output, both.output);
  const cross = await mha.forward(tensor([[[0, 0, 0, 0]]]), x);
  expectClose(cross.output, [3, 4, 5, 6], byHand);
  mha.dispose();
});

test('heads are added with merge sum', async () => {
  const mha = engine.multiHeadAttention({
    embedDim: 2,
    numHeads: 2,
    headDim: 1,
    merge: 'sum',
    bias: false,
  });
  const { output } = await mha.getWeights();
  expect(output.kernel.shape).toEqual([1, 1, 2]);
  await mha.setWeights({
    query: { kernel: tensor([0, 0, 0, 0], [2, 2, 1]) },
    value: { kernel: tensor([1, 0, 0, 1], [2, 2, 1]) },
    output: { kernel: tensor([1, 10], [1, 1, 2]) },
  });
  expectClose((await mha.forward(tensor([[3, 4]]))).output, [7, 70], byHand);
  mha.dispose();
});

test("Keras' eight arrays, in either shape, and flat", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const x = [randomTensor([3, 6], 1), randomTensor([4, 7], 2), randomTensor([4, 8], 3)];
  const three = [[6, 2, 4], [2, 4], [7, 2, 4], [2, 4], [8, 2, 5], [2, 5], [2, 5, 3], [3]];
  const dense = [[6, 8], [8], [7, 8], [8], [8, 10], [10], [10, 3], [3]];
  const outputs = [];
  for (const shapes of [three, dense, null]) {
    const arrays = three.map((shape, i) => {
      const { data } = randomTensor(shape, i);
      return shapes === null ? data : { data, shape: shapes[i] };
    });
    await mha.loadKeras(arrays);
    outputs.push((await mha.forward(...x)).output);
  }
  expectSame(outputs[1], outputs[0]);
  expectSame(outputs[2], outputs[0]);
  mha.dispose();
});

test('PyTorch: packed and separate, and back', async () => {
  const mha = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 });
  const dict = {
    in_proj_weight: randomTensor([12, 4], 1),
    in_proj_bias: randomTensor([12], 2),
    'out_proj.weight': randomTensor([4, 4], 3),
    'out_proj.bias': randomTensor([4], 4),
  };
  await mha.loadTorch(dict);
  const packed = await mha.toTorch();
  expect(Object.keys(packed).sort()).toEqual(Object.keys(dict).sort());
  for (const name of Object.keys(dict)) {
    expect(packed[name].shape).toEqual(dict[name].shape);
    expectSame(packed[name], dict[name]);
  }
  const x = randomTensor([3, 4], 5);
  const { output } = await mha.forward(x);
  const part = (i) => ({
    data: dict.in_proj_weight.data.subarray(16 * i, 16 * i + 16),
    shape: [4, 4],
  });
  await mha.setWeights({ query: { kernel: randomTensor([4, 2, 2], 9) } });
  await mha.loadTorch({
    q_proj_weight: part(0),
    k_proj_weight: part(1),
    v_proj_weight: part(2),
    in_proj_bias: dict.in_proj_bias,
    'out_proj.weight': dict['out_proj.weight'],
    'out_proj.bias': dict['out_proj.bias'],
  });
  expectSame((await mha.forward(x)).output, output);
  mha.dispose();

  const wide = engine.multiHeadAttention({
    embedDim: 4,
    numHeads: 2,
    keyDim: 3,
    valueDim: 5,
    bias: false,
  });
  const separate = await wide.toTorch();
  expect(
    Object.fromEntries(Object.entries(separate).map(([name, { shape }]) => [name, shape])),
  ).toEqual({
    q_proj_weight: [4, 4],
    k_proj_weight: [4, 3],
    v_proj_weight: [4, 5],
    'out_proj.weight': [4, 4],
  });
  wide.dispose();
});

test('queued calls keep their order: a forward before new weights uses the old ones', async () => {
  const mha = await meanLayer();
  const x = tensor([[1, 2, 3, 4]]);
  const busy = engine.attention(...[1, 2, 3].map((seed) => randomTensor([1, 4, 1024, 64], seed)));
  const before = mha.forward(x);
  const set = mha.setWeights({ output: { kernel: tensor(new Float32Array(16), [2, 2, 4]) } });
  const after = mha.forward(x);
  mha.dispose();
  expectClose((await before).output, [1, 2, 3, 4], byHand);
  await set;
  expectClose((await after).output, [0, 0, 0, 0], byHand);
  await busy;
  expect(await errorOf(() => mha.forward(x))).toMatchObject({
    name: 'HeadwiseError',
    code: 'DISPOSED',
  });
  expect(await errorOf(() => mha.forwardSync(x))).toMatchObject({ code: 'DISPOSED' });
  expect(await errorOf(() => mha.getWeights())).toMatchObject({ code: 'DISPOSED' });
  mha.dispose();
});

describe('refusals', () => {
  test.each([
    ['nothing', undefined, 'INVALID_TYPE', /config/],
    ['no embedDim', { numHeads: 2 }, 'INVALID_TYPE', /embedDim/],
    ['heads of no whole size', { embedDim: 5, numHeads: 2 }, 'INVALID_SHAPE', /headDim.*2.*5/],
    [
      'groups that do not divide',
      { embedDim: 8, numHeads: 4, numKvHeads: 3 },
      'INVALID_SHAPE',
      /numKvHeads.*4.*3/,
    ],
    [
      'a fractional size',
      { embedDim: 8, numHeads: 2, keyDim: 1.5 },
      'INVALID_VALUE',
      /keyDim.*1\.5/,
    ],
    ['an unknown field', { embedDim: 8, numHeads: 2, heads: 2 }, 'INVALID_VALUE', /heads/],
    [
      'an odd rope',
      { embedDim: 8, numHeads: 2, rope: { dim: 3 } },
      'INVALID_VALUE',
      /rope\.dim.*3/,
    ],
    [
      'an odd head with rope',
      { embedDim: 6, numHeads: 2, rope: {} },
      'INVALID_VALUE',
      /rope\.dim.*3/,
    ],
    [
      'an unknown projection',
      { embedDim: 8, numHeads: 2, projection: 'conv' },
      'INVALID_VALUE',
      /projection/,
    ],
    [
      'no kernel size',
      { embedDim: 8, numHeads: 2, projection: { type: 'conv' } },
      'INVALID_TYPE',
      /kernelSize/,
    ],
    [
      'an unknown score',
      { embedDim: 8, numHeads: 2, score: 'euclid' },
      'INVALID_VALUE',
      /score.*euclid/,
    ],
    ['more than memory', { embedDim: 2 ** 20, numHeads: 1 }, 'OUT_OF_MEMORY', /bytes/],
  ])('%s', async (_, config, code, message) => {
    const error = await errorOf(() => engine.multiHeadAttention(config));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    await expectWorks(engine);
  });

  test('wrong inputs, weights and options name the argument', async () => {
    const mha = engine.multiHeadAttention(sizes);
    const [q, k, v] = [
      randomTensor([1, 3, 6], 1),
      randomTensor([1, 4, 7], 2),
      randomTensor([1, 4, 8], 3),
    ];
    const cases = [
      [() => mha.forward(), 'INVALID_TYPE', /query/],
      [() => mha.forward(q), 'INVALID_SHAPE', /key.*7.*\[1,3,6\]/],
      [() => mha.forward(q, k, k), 'INVALID_SHAPE', /value.*8.*\[1,4,7\]/],
      [() => mha.forward(q, k, randomTensor([1, 5, 8], 1)), 'INVALID_SHAPE', /value.*4.*\[1,5,8\]/],
      [
        () => mha.forward(q, randomTensor([2, 4, 7], 1), v),
        'INVALID_SHAPE',
        /key.*batch 1.*\[2,4,7\]/,
      ],
      [() => mha.forward(randomTensor([6], 1), k, v), 'INVALID_SHAPE', /query.*\[6\]/],
      [() => mha.forward(q, k, v, { scale: 1 }), 'INVALID_VALUE', /scale/],
      [
        () => mha.forward(q, k, v, { mask: [[true, false]] }),
        'INVALID_SHAPE',
        /mask.*\[1,2\].*\[1,2,3,4\]/,
      ],
      [() => mha.setWeights(), 'INVALID_TYPE', /weights/],
      [() => mha.setWeights({ querry: {} }), 'INVALID_VALUE', /querry/],
      [
        () => mha.setWeights({ query: { kernel: randomTensor([6, 4, 2], 1) } }),
        'INVALID_SHAPE',
        /query\.kernel.*\[6,2,4\].*\[6,4,2\]/,
      ],
      [() => mha.setWeights({ score: { kernel: [[1]] } }), 'INVALID_VALUE', /score/],
      [() => mha.loadKeras([[1]]), 'INVALID_SHAPE', /8 arrays.*1/],
      [() => mha.loadKeras({}), 'INVALID_TYPE', /get_weights/],
      [() => mha.loadTorch({}), 'INVALID_TYPE', /q_proj_weight/],
      [() => mha.loadTorch({ bias_k: [1] }), 'UNSUPPORTED', /bias_k/],
    ];
    for (const [call, code, message] of cases) {
      const error = await errorOf(call);
      expect(error).toBeInstanceOf(Error);
      expect(`${error.code}: ${error.message}`).toMatch(
        new RegExp(`^${code}: .*${message.source}`),
      );
    }
    expect((await mha.forward(q, k, v)).output.shape).toEqual([1, 3, 3]);
    mha.dispose();
  });

  test('what PyTorch and Keras do not have is UNSUPPORTED', async () => {
    const summed = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, merge: 'sum' });
    expect(await errorOf(() => summed.toTorch())).toMatchObject({ code: 'UNSUPPORTED' });
    summed.dispose();
    const projection = { type: 'conv', kernelSize: 3 };
    const convolved = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, projection });
    expect((await convolved.getWeights()).query.kernel.shape).toEqual([3, 4, 2, 2]);
    expect(await errorOf(() => convolved.loadKeras([]))).toMatchObject({ code: 'UNSUPPORTED' });
    convolved.dispose();
  });
});
