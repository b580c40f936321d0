// Tests: engine.transformer through the package: a task that it learns, generation, checkpoints, threads, and what it refuses.

import { createEngine, warmupSchedule } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { batches, decoderOnly, deeper, reversals, small, tensor } from './support/transformer.js';
import { byHand } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

const identity = (n) =>
  tensor(
    Array.from({ length: n * n }, (_, i) => Number(i % (n + 1) === 0)),
    [n, n],
  );

// An encoder between identities: its logits are what the stack puts out.
async function bareEncoder(embedDim, options) {
  const model = engine.transformer({
    kind: 'encoder',
    embedDim,
    patchDim: embedDim,
    targetVocabulary: embedDim,
    positions: 'none',
    trainable: false,
    ...options,
  });
  await model.setWeights({
    'source_projection.weight': identity(embedDim),
    'generator.weight': identity(embedDim),
  });
  return model;
}

test('heads are split and merged token by token (E6)', async () => {
  // Only attention is left: both norms see the sum of tokens and attention, so the difference is looked at before them.
  const model = await bareEncoder(4, {
    numHeads: 2,
    encoderLayers: 1,
    feedForwardDim: 1,
    normFirst: true,
    finalNorm: false,
  });
  const zeros = (shape) => tensor(new Array(shape.reduce((a, b) => a * b, 1)).fill(0), shape);
  const inProjection = zeros([12, 4]);
  for (let i = 0; i < 4; i++) inProjection.data[(8 + i) * 4 + i] = 1;
  await model.setWeights({
    'encoder.layers.0.self_attn.in_proj_weight': inProjection,
    'encoder.layers.0.self_attn.out_proj.weight': identity(4),
    'encoder.layers.0.linear2.weight': zeros([4, 1]),
    'encoder.layers.0.norm1.weight': tensor([1, 2, 3, 4], [4]),
  });
  const x = [[1, 2, 3, 5], [8, 5, 6, 7]]; // prettier-ignore
  const normed = x.map((row) => {
    const mean = row.reduce((a, b) => a + b) / 4;
    const spread = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / 4 + 1e-5);
    return row.map((value, i) => ((value - mean) / spread) * (i + 1));
  });
  const mean = normed[0].map((value, i) => (value + normed[1][i]) / 2);
  const logits = await model.forward({ patches: tensor(x.flat(), [1, 2, 4]) });
  expectClose(logits, x.map((row) => row.map((value, i) => value + mean[i])).flat(), byHand);
  model.dispose();
});

test('it learns to reverse, generates, and its attention adds up to 1', async () => {
  const model = engine.transformer(small);
  let last;
  for await (const progress of model.train(batches(300), {
    learningRate: 0.01,
    maxGradientNorm: 1,
  }))
    last = progress;
  expect(last.step).toBe(300);
  expect(last.loss).toBeLessThan(0.3);
  const input = { source: [[1, 4, 2]] };
  const options = { startToken: 0, endToken: 6 };
  expect(await model.generate(input, options)).toEqual([2, 4, 1]);
  expect(await model.generate(input, { ...options, beams: 3 })).toEqual([2, 4, 1]);
  expect(await model.generate(input, { ...options, topK: 1, seed: 3 })).toEqual([2, 4, 1]);
  const drawn = { ...options, temperature: 3, seed: 5 };
  expect(await model.generate(input, drawn)).toEqual(await model.generate(input, drawn));
  const weights = await model.attentionWeights({ ...input, target: [[0, 2]] });
  expect(weights.cross.map(({ shape }) => shape)).toEqual([[1, 2, 2, 3]]);
  const [a, b, c] = weights.cross[0].data;
  expect(a + b + c).toBeCloseTo(1, 5);
  model.dispose();
});

test('a later target token changes no earlier logits (E1)', async () => {
  const model = engine.transformer(small);
  const rows = async (target) =>
    (await model.forward({ source: [[1, 2]], target: [target] })).data.slice(0, 14);
  expectSame(await rows([0, 1, 2]), await rows([0, 1, 5]));
  model.dispose();
});

test('the same bits for any number of threads, and from a checkpoint on', async () => {
  const single = await createEngine({ threads: 1, variant: engine.info.variant });
  const options = {
    optimizer: 'adamw',
    weightDecay: 0.01,
    learningRate: warmupSchedule(16, 4),
    labelSmoothing: 0.1,
  };
  const config = { ...small, dropout: 0.1, seed: 4 };
  const run = async (model, from, steps) => {
    const losses = [];
    for await (const { loss } of model.train(batches(steps, from), options)) losses.push(loss);
    return losses;
  };
  const [one, two, resumed] = [
    single.transformer(config),
    engine.transformer(config),
    engine.transformer({ ...config, seed: 4 }),
  ];
  const losses = await run(one, 1, 6);
  const begun = await run(two, 1, 3);
  await resumed.load(await two.save({ optimizer: true }));
  expect(resumed.step).toBe(3);
  expect([...begun, ...(await run(resumed, 4, 3))]).toEqual(losses);
  single.dispose();
});

test('a checkpoint is a safetensors file; a damaged or strange one is refused and changes nothing', async () => {
  const model = engine.transformer(small);
  const file = await model.save();
  const header = JSON.parse(
    new TextDecoder().decode(
      file.subarray(8, 8 + Number(new DataView(file.buffer).getBigUint64(0, true))),
    ),
  );
  expect(header['encoder.layers.0.self_attn.in_proj_weight'].shape).toEqual([48, 16]);
  const before = await model.getWeights();
  const refuses = (bytes, words) =>
    expect(model.load(bytes)).rejects.toMatchObject({ message: expect.stringMatching(words) });
  await refuses(file.subarray(0, 100), /checkpoint/);
  await refuses(file.subarray(0, file.length - 4), /generator\.bias ends at/);
  await refuses(new Uint8Array(64), /checkpoint/);
  await refuses('file', /checkpoint.*String/);
  const wider = engine.transformer({ ...small, feedForwardDim: 40 });
  await refuses(await wider.save(), /linear1.*32,16.*40,16/);
  const deeper = engine.transformer({ ...small, encoderLayers: 2 });
  await refuses(await deeper.save(), /encoder\.layers\.1/);
  const after = await model.getWeights();
  for (const name of Object.keys(before)) expectSame(after[name], before[name], name);
});

test('what it refuses names the argument, and it works on', async () => {
  const refused = (config) => {
    try {
      engine.transformer({ ...small, ...config });
    } catch (error) {
      return `${error.code} ${error.message}`;
    }
    return 'nothing';
  };
  expect(refused({ numHeads: 3 })).toMatch(/INVALID_SHAPE numHeads/);
  expect(refused({ kind: 'decoder' })).toMatch(/INVALID_VALUE encoderLayers/);
  expect(refused({ dropout: 1 })).toMatch(/INVALID_VALUE dropout/);
  expect(refused({ sourceVocabulary: undefined })).toMatch(/INVALID_TYPE sourceVocabulary/);
  expect(refused({ depth: 2 })).toMatch(/INVALID_VALUE config.*depth/);
  const model = engine.transformer(small);
  const batch = reversals(2, 3, 1);
  const fails = (change, words, options) =>
    expect(model.trainStep({ ...batch, ...change }, options)).rejects.toMatchObject({
      message: expect.stringMatching(words),
    });
  await fails({ source: [[1, 2, 6], [1, 2, 3]] }, /^source: element 2 is 6/); // prettier-ignore
  await fails({ target: [[0, -1, 2, 3], [0, 1, 2, 3]] }, /^target: element 1 is -1/); // prettier-ignore
  await fails({ labels: [[0, 1]] }, /^labels: shape \[2,4\].*\[1,2\]/);
  await fails({ source: [new Array(9).fill(1), new Array(9).fill(1)] }, /^source: a length.*8.*9/);
  await fails({}, /learningRate/, { learningRate: () => NaN });
  await fails({}, /optimizer/, { optimizer: 'lion' });
  await fails({ sources: [] }, /sources/);
  const weights = await model.getWeights();
  const broken = tensor(weights['generator.bias'].data, [7]);
  broken.data[3] = NaN;
  await model.setWeights({ 'generator.bias': broken });
  await fails({}, /^step 1: generator is the first to be not finite; the loss is NaN/);
  await model.setWeights({ 'generator.bias': weights['generator.bias'] });
  expect((await model.trainStep(batch)).step).toBe(1);
  const abort = new AbortController();
  abort.abort();
  await expect(model.train([batch], { signal: abort.signal }).next()).rejects.toMatchObject({
    code: 'ABORTED',
  });
  model.dispose();
  model.dispose();
  await expect(model.trainStep(batch)).rejects.toMatchObject({ code: 'DISPOSED' });
});

test('a step that is not finite names step and module, and training goes on as if it had never been', async () => {
  const config = { ...deeper, norm: 'batch', seed: 3 };
  const [model, other] = [engine.transformer(config), engine.transformer(config)];
  const options = { optimizer: 'adamw', learningRate: 0.01 };
  const step = (on, seed) => on.trainStep(reversals(4, 3, seed), options);
  await step(model, 1);
  const name = 'decoder.layers.1.self_attn.out_proj.bias';
  const { [name]: good } = await model.getWeights();
  const poisoned = tensor(good.data, good.shape);
  poisoned.data[2] = Infinity;
  await model.setWeights({ [name]: poisoned });
  const error = await step(model, 2).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(RangeError);
  expect(error).toMatchObject({
    code: 'INVALID_VALUE',
    step: 2,
    module: 'decoder.layers.1.self_attn',
    message: expect.stringMatching(/^step 2: decoder\.layers\.1\.self_attn /),
  });
  const parts = model.trainStep(reversals(4, 3, 2), { ...options, accumulate: 2 });
  await expect(parts).rejects.toMatchObject({ step: 2, module: 'decoder.layers.1.self_attn' });
  const running = model.train([reversals(4, 3, 2)], options).next();
  await expect(running).rejects.toMatchObject({ step: 2, module: 'decoder.layers.1.self_attn' });
  expect(model.step).toBe(1);
  await model.setWeights({ [name]: good });
  await step(other, 1);
  expect((await step(model, 2)).loss).toBe((await step(other, 2)).loss);
  const [weights, expected] = [await model.getWeights(), await other.getWeights()];
  for (const key of Object.keys(expected)) expectSame(weights[key], expected[key], key);
  model.dispose();
  other.dispose();
});

test('patches that are not finite are told from the parameters', async () => {
  const model = engine.transformer({
    kind: 'encoder',
    embedDim: 8,
    numHeads: 2,
    encoderLayers: 1,
    patchDim: 2,
    targetVocabulary: 3,
  });
  const batch = { patches: tensor([1, NaN, 0, 1], [1, 2, 2]), labels: [[0, 1]] };
  await expect(model.trainStep(batch)).rejects.toMatchObject({ module: 'source_projection' });
  model.dispose();
});

test.each([
  ['encoder-decoder', {}],
  ['decoder', { kind: 'decoder', encoderLayers: undefined, sourceVocabulary: undefined }],
])('%s: gradients of parts add up to those of the whole batch', async (_, change) => {
  const config = { ...small, ...change, seed: 2 };
  const { source, ...rest } = reversals(5, 3, 7);
  // Parts of 2, 2 and 1 sequences, with 8, 3 and 1 labels that count.
  const labels = rest.labels.map((row, i) =>
    row.map((label, j) => (j < [4, 4, 2, 1, 1][i] ? label : -1)),
  );
  const batch = { ...rest, labels, ...(change.kind === 'decoder' ? {} : { source }) };
  const options = {
    optimizer: 'sgd',
    learningRate: 0.5,
    maxGradientNorm: 0.5,
    labelSmoothing: 0.1,
  };
  const train = async (more) => {
    const model = engine.transformer(config);
    const progress = await model.trainStep(batch, { ...options, ...more });
    const weights = await model.getWeights();
    model.dispose();
    return { progress, weights };
  };
  const whole = await train({});
  for (const accumulate of [2, 3, 50]) {
    const parts = await train({ accumulate });
    for (const key of ['step', 'loss', 'accuracy', 'gradientNorm'])
      expect(parts.progress[key]).toBeCloseTo(whole.progress[key], 5);
    for (const [name, expected] of Object.entries(whole.weights))
      expectClose(parts.weights[name], expected, byHand, name);
  }
  const model = engine.transformer(config);
  await expect(model.trainStep(batch, { accumulate: 0 })).rejects.toThrow(/^accumulate/);
  model.dispose();
});

test('a step in parts takes less memory, and drops other elements in each part', async () => {
  const own = await createEngine({ threads: 2, variant: engine.info.variant });
  const model = own.transformer({ ...decoderOnly, embedDim: 64, maxLength: 64, dropout: 0.1 });
  const row = Array.from({ length: 64 }, (_, i) => i % 7);
  const batch = { target: new Array(16).fill(row), labels: new Array(16).fill(row) };
  await model.trainStep(batch, { accumulate: 8 });
  const { peakBytes } = await own.memory();
  await model.trainStep(batch);
  expect((await own.memory()).peakBytes).toBeGreaterThan(1.5 * peakBytes);
  own.dispose();
});

test('rotary positions and key heads: the shapes, the file, and what does not fit', async () => {
  const config = {
    ...small,
    embedDim: 24,
    numHeads: 4,
    numKvHeads: 2,
    positions: 'rotary',
    rope: { dim: 4, scaling: { type: 'yarn', factor: 4, originalLength: 4 } },
  };
  const model = engine.transformer(config);
  const weights = await model.getWeights();
  expect(weights['decoder.layers.0.multihead_attn.in_proj_weight'].shape).toEqual([
    24 + 12 + 12,
    24,
  ]);
  let last;
  for await (const progress of model.train(batches(150), {
    learningRate: 0.01,
    maxGradientNorm: 1,
  }))
    last = progress;
  expect(last.loss).toBeLessThan(0.7);
  const file = await model.save();
  const again = engine.transformer({ ...config, seed: 9 });
  await again.load(file);
  const input = { source: [[1, 2, 3]], target: [[0, 3]] };
  expectSame(await again.forward(input), await model.forward(input));
  // What shapes do not tell, the configuration in the file does.
  const refuses = async (change, words) => {
    const other = engine.transformer({ ...config, ...change });
    const before = await other.forward(input);
    await expect(other.load(file)).rejects.toThrow(words);
    expectSame(await other.forward(input), before);
    other.dispose();
  };
  await refuses(
    { rope: { ...config.rope, base: 500 } },
    /^checkpoint: rope\.base is 10000 there and 500/,
  );
  await refuses({ positions: 'none', rope: undefined }, /^checkpoint: positions is "rotary" there/);
  await refuses(
    { numHeads: 8, numKvHeads: 4, rope: { dim: 2 } },
    /^checkpoint: numHeads is 4 there and 8/,
  );
  await refuses({ activation: 'gelu' }, /^checkpoint: activation is "relu"/);
  const refused = (change, words) =>
    expect(() => engine.transformer({ ...config, ...change })).toThrow(words);
  refused({ numKvHeads: 3 }, /^numKvHeads: a divisor of numHeads = 4/);
  refused({ rope: { dim: 3 } }, /^rope\.dim/);
  refused({ rope: { scaling: { type: 'linear' } } }, /^rope\.scaling\.factor/);
  refused({ positions: 'learned' }, /^rope: only with positions 'rotary'/);
  model.dispose();
  again.dispose();
});

test('the original warm-up (E9)', () => {
  const rate = warmupSchedule(64, 4);
  expect([1, 4, 16].map(rate)).toEqual([0.015625, 0.0625, 0.03125]);
  expect(rate(0)).toBe(rate(1));
  expect(warmupSchedule(64, 0)(1)).toBe(0.125);
});
