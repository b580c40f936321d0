// Tests: weight decay, and what is left out of it. Without gradients a step of AdamW is p · (1 − rate · decay) alone.

import { createEngine } from 'headwise';

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

// Widths of 16 fill their places to the last element; those of 10 leave gaps.
const models = [16, 10].map((embedDim) => [
  embedDim,
  {
    kind: 'decoder',
    embedDim,
    numHeads: 2,
    decoderLayers: 2,
    targetVocabulary: 5,
    normFirst: true,
  },
]);
const optimizers = ['adamw', 'adam', 'sgd'];

/** The names of the parameters that a step with these options changes; labels of −1 give no gradients. */
async function changed(config, options) {
  const model = engine.transformer(config);
  const filled = Object.fromEntries(
    Object.entries(await model.getWeights()).map(([name, { data, shape }]) => [
      name,
      { data: new Float32Array(data.length).fill(0.5), shape },
    ]),
  );
  await model.setWeights(filled);
  await model.trainStep(
    { target: [[1, 2]], labels: [[-1, -1]] },
    { learningRate: 0.1, ...options },
  );
  const after = await model.getWeights();
  model.dispose();
  const names = Object.keys(after);
  const some = names.filter((name) => after[name].data.some((x) => x !== 0.5));
  const all = names.filter((name) => after[name].data.every((x) => x !== 0.5));
  expect(some).toEqual(all); // a parameter decays whole or not at all
  return { names, some, after };
}

describe.each(models)('width %i', (_, config) => {
  test.each(optimizers)('%s: all decay by default', async (optimizer) => {
    const { names, some, after } = await changed(config, { optimizer, weightDecay: 0.25 });
    expect(some).toEqual(names);
    if (optimizer === 'adamw')
      expect(after['decoder.norm.bias'].data[0]).toBeCloseTo(0.5 * 0.975, 6);
  });

  test.each(optimizers)("%s: 'vectors' leaves out norms and biases", async (optimizer) => {
    const { names, some } = await changed(config, {
      optimizer,
      weightDecay: 0.25,
      noDecay: 'vectors',
    });
    expect(some).toEqual(names.filter((name) => !/norm|bias/u.test(name)));
    expect(some.length).toBeGreaterThan(5);
  });

  test('a regular expression leaves out what it matches, whatever its flags', async () => {
    const noDecay = /linear1|norm2\.weight|EMBEDDING/giu;
    const { names, some } = await changed(config, {
      optimizer: 'adamw',
      weightDecay: 0.25,
      noDecay,
    });
    expect(some).toEqual(names.filter((name) => !/linear1|norm2\.weight|embedding/u.test(name)));
  });
});

test('in a worker, too', async () => {
  const remote = await createEngine({ backend: 'wasm', threads: 1, offMainThread: true });
  try {
    const model = remote.transformer(models[0][1]);
    const before = await model.getWeights();
    const options = { optimizer: 'adamw', weightDecay: 1, learningRate: 0.1, noDecay: /norm/u };
    await model.trainStep({ target: [[1, 2]], labels: [[-1, -1]] }, options);
    const after = await model.getWeights();
    expect(after['decoder.norm.weight'].data).toEqual(before['decoder.norm.weight'].data);
    expect(after['generator.weight'].data).not.toEqual(before['generator.weight'].data);
  } finally {
    remote.dispose();
  }
});

test.each([
  [3, 'INVALID_TYPE', /noDecay.*regular expression.*got 3/u],
  ['biases', 'INVALID_VALUE', /noDecay.*'vectors'/u],
  [null, 'INVALID_TYPE', /noDecay/u],
])('noDecay %p is refused', async (noDecay, code, words) => {
  const model = engine.transformer(models[0][1]);
  await expect(
    model.trainStep({ target: [[1]], labels: [[2]] }, { noDecay }),
  ).rejects.toMatchObject({ code, message: expect.stringMatching(words) });
  expect(model.step).toBe(0);
});
