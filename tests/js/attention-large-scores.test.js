// Tests: gradients where scores are large (pytorch/pytorch#125674, #110213), through the package: the weights of the backward
// pass are those of the forward one, by hand and in training.
import { createEngine } from 'headwise';
import { expectClose } from './compare.js';
import { variants } from './configurations.js';
import { randomTensor } from './support/random.js';
import { byHand } from './tolerances.js';

const engines = [];
beforeAll(async () => {
  for (const variant of variants) {
    engines.push(await createEngine({ backend: 'wasm', threads: 2, variant }));
  }
});
afterAll(() => engines.forEach((engine) => engine.dispose()));

const lowest = -3.4028234663852886e38;
const numbers = (data, shape) => ({ data: Float32Array.from(data), shape });
const filled = (shape, value) => numbers(new Float32Array(shape[0] * shape[1]).fill(value), shape);

async function both(engine, dOutput, q, k, v, options) {
  const forward = await engine.attention(q, k, v, {
    ...options,
    returnLogSumExp: true,
    returnWeights: true,
  });
  const { output, logSumExp, weights } = forward;
  const gradients = await engine.attentionBackward(dOutput, q, k, v, output, logSumExp, options);
  return { output, weights, ...gradients };
}

test.each([1e6, 1e10, 1e16, 1e30, 1e36, 3e38])(
  '7 equal scores of %d weigh 1/7 each, both ways',
  async (size) => {
    for (const engine of engines) {
      const q = numbers([Math.sqrt(size)], [1, 1]);
      const k = filled([7, 1], Math.sqrt(size));
      const v = randomTensor([7, 1], 9);
      const { output, weights, dv } = await both(engine, filled([1, 1], 1), q, k, v, { scale: 1 });
      expectClose(weights, new Array(7).fill(1 / 7), byHand);
      expectClose(dv, new Array(7).fill(1 / 7), byHand);
      expectClose(output, [v.data.reduce((sum, x) => sum + x) / 7], byHand);
    }
  },
);

test.each([-1e4, -1e6, -1e9, lowest])(
  'a row whose bias is %d for all keys has the weights of one without',
  async (value) => {
    for (const engine of engines) {
      const q = filled([2, 1], 0);
      const bias = numbers([...new Array(7).fill(value), ...new Array(7).fill(0)], [2, 7]);
      const k = randomTensor([7, 1], 1);
      const v = randomTensor([7, 1], 2);
      const { weights, dv } = await both(engine, numbers([1, 0], [2, 1]), q, k, v, { bias });
      expectClose(weights, new Array(14).fill(1 / 7), byHand);
      expectClose(dv, new Array(7).fill(1 / 7), byHand);
    }
  },
);

// Scores of size² with differences of a few units: the weights of a row add up to 1 in the backward pass as well.
test.each([1e2, 3e3, 1e5])(
  'rows of scores near %d² have weights that add up to 1 in the backward pass',
  async (size) => {
    for (const engine of engines) {
      const [q, k, v] = [randomTensor([3, 4], 1), randomTensor([5, 4], 2), randomTensor([5, 4], 3)];
      for (let i = 0; i < 3; i++) q.data[i * 4] = size;
      for (let j = 0; j < 5; j++) k.data[j * 4] = size;
      const { dv } = await both(engine, filled([3, 4], 1), q, k, v, { scale: 1 });
      const sum = dv.data.filter((_, i) => i % 4 === 0).reduce((a, b) => a + b);
      expect(Math.abs(sum - 3)).toBeLessThan(1e-5);
    }
  },
);

test('a row that sees one key has gradients of exactly 0 for queries and keys', async () => {
  for (const engine of engines) {
    const [q, k, v] = [randomTensor([9, 16], 1), randomTensor([9, 16], 2), randomTensor([9, 8], 3)];
    const { dq, dk } = await both(engine, randomTensor([9, 8], 4), q, k, v, { window: [0, 0] });
    expect([...dq.data, ...dk.data].every((x) => x === 0)).toBe(true);
  }
});

test('values near the limit of float32 have a mean', async () => {
  for (const engine of engines) {
    for (const rows of [1, 20]) {
      const v = filled([4, 2], 1e38);
      const { output } = await engine.attention(filled([rows, 2], 0), filled([4, 2], 0), v);
      for (const x of output.data) expect(x).toBe(v.data[0]);
    }
  }
});

describe('training with a mask of large finite numbers', () => {
  // Queries and keys of 0: every score is exactly the bias, so the weights are exactly 1/7 whatever it is.
  async function step(engine, options) {
    const model = engine.transformer({
      kind: 'encoder',
      embedDim: 8,
      numHeads: 2,
      encoderLayers: 1,
      sourceVocabulary: 9,
      targetVocabulary: 4,
      seed: 5,
    });
    const kernel = 'encoder.layers.0.self_attn.in_proj_weight';
    const { data, shape } = (await model.getWeights())[kernel];
    data.fill(0, 0, 128);
    await model.setWeights({
      [kernel]: { data, shape },
      'encoder.layers.0.self_attn.in_proj_bias': { data: new Float32Array(24), shape: [24] },
    });
    const batch = { source: [[1, 2, 3, 4, 5, 6, 7]], labels: [[0, 1, 2, 3, 0, 1, 2]], ...options };
    const result = await model.trainStep(batch, { learningRate: 0 });
    model.dispose();
    return result;
  }

  test.each([-1e2, -1e5, -1e9, lowest])(
    'of %d for all keys is training without one',
    async (value) => {
      const [engine] = engines;
      const plain = await step(engine);
      const masked = await step(engine, { sourceAttention: { bias: filled([7, 7], value) } });
      expectClose([masked.loss, masked.gradientNorm], [plain.loss, plain.gradientNorm], byHand);
    },
  );
});
