// Tests: what generate does where logits or the temperature are at the limits of floats: an error that names the token, or the token
// that the limit has, never one that is drawn from NaN.

import { createEngine } from 'headwise';

let engine;
let model;
let greedy;
const start = { prompt: [1], maxTokens: 5 };
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 1 });
  model = engine.transformer({
    ...{ kind: 'decoder', embedDim: 8, numHeads: 2, decoderLayers: 1, targetVocabulary: 6 },
    ...{ seed: 1, maxLength: 16 },
  });
  const { 'generator.bias': bias } = await model.getWeights();
  bias.data.set([0, 0.1, -0.1, 0.2, 0.3, 0]);
  await model.setWeights({ 'generator.bias': bias });
  greedy = await model.generate({}, start);
});
afterAll(() => engine.dispose());

/** Runs with one tensor changed, and puts it back. */
async function withChanged(name, change, run) {
  const { [name]: kept } = await model.getWeights();
  const data = kept.data.slice();
  change(data);
  await model.setWeights({ [name]: { data, shape: kept.shape } });
  try {
    return await run();
  } finally {
    await model.setWeights({ [name]: kept });
  }
}
const withBias = (values, run) => withChanged('generator.bias', (data) => data.set(values), run);

const ways = [{}, { temperature: 1, seed: 1 }, { topP: 0.5, seed: 2 }, { beams: 2 }];

test.each([1e-7, 1e-30, 1e-300, 1e-308, Number.MIN_VALUE])(
  'temperature %p takes the likeliest token',
  async (temperature) => {
    for (let seed = 0; seed < 5; seed++)
      expect(await model.generate({}, { ...start, temperature, seed })).toEqual(greedy);
  },
);

test('a temperature above all logits draws evenly, and topK and topP still hold', async () => {
  const seen = new Set();
  for (let seed = 0; seed < 30; seed++) {
    const drawn = await model.generate({}, { ...start, temperature: 1e38, seed });
    drawn.forEach((token) => seen.add(token));
  }
  expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5]);
  for (const only of [{ topK: 1 }, { topP: 1e-300 }])
    expect(await model.generate({}, { ...start, temperature: 1e38, ...only })).toEqual(greedy);
});

describe.each(ways)('with %j', (way) => {
  test.each([
    ['one NaN', [0, NaN, 0, 0, 0, 0], /the logit of token 1 is NaN for new token 0/],
    ['all NaN', Array(6).fill(NaN), /token 0 is NaN/],
    ['+Infinity', [0, 0, 0, Infinity, 0, 0], /the logit of token 3 is Infinity/],
    ['all −Infinity', Array(6).fill(-Infinity), /all logits are −Infinity/],
  ])('logits with %s are an error, and the model generates as before', async (_, values, words) => {
    await withBias(values, () =>
      expect(model.generate({}, { ...start, ...way })).rejects.toMatchObject({
        ...{ name: 'RangeError', code: 'INVALID_VALUE', position: 0 },
        message: expect.stringMatching(words),
      }),
    );
    expect(await model.generate({}, start)).toEqual(greedy);
  });

  test('−Infinity rules tokens out', async () => {
    const values = Array(6).fill(-Infinity);
    values[4] = 0;
    const tokens = await withBias(values, () => model.generate({}, { ...start, ...way }));
    expect(tokens).toEqual([4, 4, 4, 4, 4]);
  });
});

test('the position is that of the token that cannot be told; those before it have come', async () => {
  // Token 4 follows on whatever is read, but what is read of it is NaN.
  const values = [0, 0, 0, 0, 1e6, 0];
  const broken = (data) => data.fill(NaN, 4 * 8, 5 * 8);
  const run = async () => {
    const came = [];
    let failure;
    try {
      for await (const token of model.generateStream({}, start)) came.push(token);
    } catch (error) {
      failure = error;
    }
    return { came, failure };
  };
  const { came, failure } = await withBias(values, () =>
    withChanged('target_embedding.weight', broken, run),
  );
  expect(came).toEqual([4]);
  expect(failure).toMatchObject({ code: 'INVALID_VALUE', position: 1 });
});
