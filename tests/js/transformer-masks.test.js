// Tests: what a Transformer's attention may see besides padding: equal ways to say the same, what training leaves alone, and what
// is refused. PyTorch's own numbers are in conformance.test.js and training-curve.test.js.

import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { byHand } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

const config = {
  kind: 'encoder-decoder',
  embedDim: 8,
  numHeads: 2,
  feedForwardDim: 16,
  encoderLayers: 1,
  decoderLayers: 2,
  sourceVocabulary: 7,
  targetVocabulary: 6,
  maxLength: 6,
};
const batch = {
  source: [[1, 2, 3], [4, 5, 6]], // prettier-ignore
  target: [[1, 2, 3, 4], [5, 4, 3, 2]], // prettier-ignore
};
const labels = [[2, 3, 4, 5], [4, 3, 2, 1]]; // prettier-ignore
const lower = [0, 1, 2, 3].map((i) => [0, 1, 2, 3].map((j) => j <= i));
const nothing = [[true, true, true], [true, true, true]]; // prettier-ignore

test('masks, biases and padding say the same in equal ways', async () => {
  const model = engine.transformer(config);
  const logits = (masks) => model.forward({ ...batch, ...masks });
  const differ = async (a, b) => expect((await a).data).not.toEqual((await b).data);

  const infinities = lower.map((row) => row.map((seen) => (seen ? 0 : -Infinity)));
  for (const targetAttention of [{ mask: lower }, { bias: infinities }])
    expectClose(await logits({ causal: false, targetAttention }), await logits({}), byHand);
  await differ(logits({ causal: false }), logits({}));

  // [B,1,1,S] is padding of the keys.
  const sourceMask = [[true, true, false], [true, false, true]]; // prettier-ignore
  const keys = sourceMask.map((row) => [[row]]);
  expectClose(
    await logits({ sourceMask }),
    await logits({ sourceAttention: { mask: keys }, memoryAttention: { mask: keys } }),
    byHand,
  );
  expectSame(await logits({ sourceMask }), await logits({ sourceMask, memoryMask: sourceMask }));
  await differ(logits({ sourceMask }), logits({ sourceMask, memoryMask: nothing }));

  // A head's bias is that head's alone: the weights tell.
  const bias = { data: Float32Array.of(0, 0, 0, 0, -Infinity, 0), shape: [2, 1, 3] };
  const { cross } = await model.attentionWeights({ ...batch, memoryAttention: { bias } });
  const row = (head) => [...cross[1].data.subarray(head * 12, head * 12 + 3)];
  expect(row(0).every((weight) => weight > 0)).toBe(true);
  expect(row(1)[1]).toBe(0);
  expect(row(1)[0] + row(1)[2]).toBeCloseTo(1, 6);
  model.dispose();
});

test('what is hidden learns nothing', async () => {
  const rowOf = async (model, token) =>
    (await model.getWeights())['source_embedding.weight'].data.slice(8 * token, 8 * token + 8);
  // Token 6 stands at a place that no other row of the encoder, and no row of the decoder, sees.
  const alone = [0, 1, 2].map((i) => [0, 1, 2].map((j) => j !== 2 || i === j));
  const hidden = {
    sourceAttention: { mask: alone },
    memoryAttention: { mask: [[true, true, false]] },
  };
  const learns = async (masks) => {
    const model = engine.transformer(config);
    const before = await rowOf(model, 6);
    await model.trainStep({ ...batch, labels, ...masks }, { optimizer: 'sgd', learningRate: 1 });
    const after = await rowOf(model, 6);
    model.dispose();
    return before.some((value, i) => value !== after[i]);
  };
  expect(await learns(hidden)).toBe(false);
  expect(await learns({ memoryAttention: hidden.memoryAttention })).toBe(true);
  expect(await learns({ sourceAttention: hidden.sourceAttention })).toBe(true);
});

test('a batch in parts has the masks of its own sequences', async () => {
  const keys = [[[[true, true, false]]], [[[false, true, true]]]]; // prettier-ignore
  const bias = [0.5, -1, 2]; // the same for all of them
  const masks = {
    sourceMask: [[true, false, true], [true, true, true]], // prettier-ignore
    targetMask: [[true, true, true, false], [false, true, true, true]], // prettier-ignore
    memoryAttention: { mask: keys, bias },
    causal: false,
  };
  const step = async (options) => {
    const model = engine.transformer(config);
    const { loss, gradientNorm } = await model.trainStep({ ...batch, labels, ...masks }, options);
    model.dispose();
    return [loss, gradientNorm];
  };
  expectClose(await step({ accumulate: 2 }), await step({}), byHand);
});

test('rows that see nothing break nothing', async () => {
  const model = engine.transformer(config);
  const none = [[false, false, false], [true, true, true]]; // prettier-ignore
  const progress = await model.trainStep({ ...batch, labels, sourceMask: none });
  expect(Number.isFinite(progress.loss) && Number.isFinite(progress.gradientNorm)).toBe(true);
  model.dispose();
});

test('without encoder layers the decoder reads the embedded source', async () => {
  const model = engine.transformer({ ...config, encoderLayers: 0, finalNorm: true });
  const names = Object.keys(await model.getWeights());
  expect(names.filter((name) => name.startsWith('encoder.'))).toEqual([]);
  const input = { source: [[1, 2, 3]], target: [[1]] };
  const [a, b] = [input, { ...input, source: [[1, 2, 4]] }].map((x) => model.forward(x));
  expect((await a).data).not.toEqual((await b).data);
  model.dispose();
});

test('what it refuses names the argument', async () => {
  const model = engine.transformer(config);
  const refuses = (masks, words, options = {}) =>
    expect(model.forward({ ...batch, ...masks, ...options })).rejects.toMatchObject({
      message: expect.stringMatching(words),
    });
  await refuses({ targetMask: [[true]] }, /^targetMask: shape \[2,4\] \(\[B,L\]\).*\[1,1\]/);
  await refuses({ memoryMask: [[true]] }, /^memoryMask: shape \[2,3\]/);
  await refuses({ sourceAttention: { mask: lower } }, /^sourceAttention\.mask: shape \[4,4\]/);
  await refuses({ targetAttention: { bias: [1, 2, 3] } }, /^targetAttention\.bias: shape \[3\]/);
  await refuses({ memoryAttention: { mask: [[1, 0, 1]] } }, /^memoryAttention\.mask/);
  await refuses({ memoryAttention: lower }, /^memoryAttention: an object/);
  await refuses({ memoryAttention: { masks: lower } }, /^memoryAttention: unknown option "masks"/);
  await refuses({ causal: 1 }, /^causal: true or false/);
  await expect(model.generate({ source: [[1]], causal: false })).rejects.toMatchObject({
    message: expect.stringMatching(/^input: unknown option "causal"/),
  });
  const decoder = engine.transformer({
    kind: 'decoder',
    embedDim: 8,
    numHeads: 2,
    decoderLayers: 1,
    targetVocabulary: 6,
  });
  await expect(decoder.forward({ target: [[1]], memoryMask: [[true]] })).rejects.toMatchObject({
    message: expect.stringMatching(/^memoryMask: .*'decoder' does not read it/),
  });
  const refusedConfig = () => engine.transformer({ ...config, kind: 'encoder', encoderLayers: 0 });
  expect(refusedConfig).toThrow(/decoderLayers|encoderLayers/);
  model.dispose();
  decoder.dispose();
});
