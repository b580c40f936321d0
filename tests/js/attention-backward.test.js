// Tests: attentionBackward through the package: against finite differences of the plain formula in doubles for every
// option that has a gradient, layouts and ranks, hidden keys, threads, and what it refuses.

import { createEngine } from 'headwise';
import { expectClose, expectSame } from './compare.js';
import { plainAttention } from './support/plain-attention.js';
import { randomTensor } from './support/random.js';
import { gradientsByDifferences, otherFloat32 } from './tolerances.js';

let engine;
let single;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
  single = await createEngine({ threads: 1, variant: engine.info.variant });
});
afterAll(() => {
  engine.dispose();
  single.dispose();
});

const forwardOptions = { returnLogSumExp: true };

async function gradientsOf(eng, dOutput, q, k, v, options = {}) {
  const forward = await eng.attention(q, k, v, { ...options, ...forwardOptions });
  return eng.attentionBackward(dOutput, q, k, v, forward.output, forward.logSumExp, options);
}

// Central differences of fourth order of the loss sum(dOutput * output), all in doubles.
function differences(dOutput, q, k, v, options, input) {
  const loss = () => {
    const { output } = plainAttention(q, k, v, options);
    return output.reduce((sum, x, i) => sum + x * dOutput.data[i], 0);
  };
  const step = 2 ** -7;
  return Array.from(input, (x, i) => {
    const at = (delta) => {
      input[i] = x + delta;
      return loss();
    };
    const slope = 8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step));
    input[i] = x;
    return slope / (12 * step);
  });
}

const doubles = ({ data, shape }) => ({ data: Float64Array.from(data), shape });

describe('gradients agree with finite differences', () => {
  const shapes = { q: [2, 4, 5, 3], k: [2, 2, 6, 3], v: [2, 2, 6, 2] };
  const cases = {
    plain: {},
    scaled: { scale: -0.7 },
    causal: { causal: true },
    'causal from the top left, in a window': { causal: true, causalOffset: 0, window: [2, 0] },
    softcap: { softcap: 1.5 },
    'bias [H,L,S]': { bias: [4, 5, 6] },
    'bias [L,S] under a softcap': { bias: [5, 6], softcap: 2 },
    'bias [B,1,1,S]': { bias: [2, 1, 1, 6] },
    'bias [H,1,1]': { bias: [4, 1, 1] },
    'bias [1]': { bias: [1] },
    sinks: { sinks: Float32Array.of(0.5, -1, 2, 0) },
    'ALiBi and lengths': { alibiSlopes: Float32Array.of(0.1, 0.2, 0.3, 0.4), kvLengths: [4, 6], qLengths: [5, 3] },
    mask: { mask: { data: Uint8Array.from({ length: 30 }, (_, i) => Number(i % 3 !== 1)), shape: [5, 6] } },
    padding: { keyPaddingMask: { data: Uint8Array.of(1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0), shape: [2, 6] } },
  }; // prettier-ignore

  test.each(Object.entries(cases))('%s', async (_, given) => {
    const [q, k, v] = Object.values(shapes).map((shape, i) => randomTensor(shape, i + 1));
    const dOutput = randomTensor([2, 4, 5, 2], 9);
    const options = { ...given };
    if (given.bias) options.bias = randomTensor(given.bias, 5);
    const got = await gradientsOf(engine, dOutput, q, k, v, options);

    const [dq, dk, dv] = [q, k, v].map(doubles);
    const precise = { ...options };
    if (options.bias) precise.bias = doubles(options.bias);
    if (options.sinks) precise.sinks = Float64Array.from(options.sinks);

    const expected = (input) => differences(dOutput, dq, dk, dv, precise, input);
    expect(got.dq.shape).toEqual(shapes.q);
    expect(got.dk.shape).toEqual(shapes.k);
    expect(got.dv.shape).toEqual(shapes.v);
    expectClose(got.dq, expected(dq.data), gradientsByDifferences, 'dq');
    expectClose(got.dk, expected(dk.data), gradientsByDifferences, 'dk');
    expectClose(got.dv, expected(dv.data), gradientsByDifferences, 'dv');
    expect(got.dBias?.shape).toEqual(given.bias);
    if (given.bias)
      expectClose(got.dBias, expected(precise.bias.data), gradientsByDifferences, 'dBias');
    expect(got.dSinks?.shape).toEqual(given.sinks && [4]);
    if (given.sinks)
      expectClose(got.dSinks, expected(precise.sinks), gradientsByDifferences, 'dSinks');
  });
});

test('dropout drops again what the seed dropped', async () => {
  // The identity for values and for the gradient: dv of a key is the sum of its weights after dropout.
  const q = randomTensor([1, 1, 4, 3], 1);
  const k = randomTensor([1, 1, 4, 3], 2);
  const identity = {
    data: Float32Array.from({ length: 16 }, (_, i) => Number(i % 5 === 0)),
    shape: [1, 1, 4, 4],
  };
  const options = { dropout: { rate: 0.5, seed: 3 } };
  const { output } = await engine.attention(q, k, identity, options);
  const { dv } = await gradientsOf(engine, identity, q, k, identity, options);
  const transposed = Array.from(
    { length: 16 },
    (_, i) => output.data[(i % 4) * 4 + Math.floor(i / 4)],
  );
  expectClose(dv, transposed, otherFloat32);
  expect(Array.from(output.data)).toContain(0);
});

test('layouts and ranks are the inputs’', async () => {
  const [L, S, H, G, D, Dv] = [7, 9, 4, 2, 5, 3];
  const turn = ({ data, shape: [B, heads, rows, size] }) => {
    const turned = new Float32Array(data.length);
    for (let b = 0; b < B; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < rows; i++)
          for (let d = 0; d < size; d++)
            turned[((b * rows + i) * heads + h) * size + d] =
              data[((b * heads + h) * rows + i) * size + d];
    return { data: turned, shape: [B, rows, heads, size] };
  };
  const flat = ({ data, shape: [B, rows, heads, size] }) => ({
    data,
    shape: [B, rows, heads * size],
  });
  const tensors = [[2, H, L, Dv], [2, H, L, D], [2, G, S, D], [2, G, S, Dv]].map((shape, i) => randomTensor(shape, i)); // prettier-ignore
  const expected = await gradientsOf(engine, ...tensors);
  const turned = await gradientsOf(engine, ...tensors.map(turn), { layout: 'blhd' });
  const ranked = await gradientsOf(engine, ...tensors.map(turn).map(flat), {
    numHeads: H,
    numKvHeads: G,
  });
  for (const name of ['dq', 'dk', 'dv']) {
    expectSame(turned[name], turn(expected[name]).data, name);
    expectSame(ranked[name], turned[name], name);
    expect(ranked[name].shape).toHaveLength(3);
  }
});

test('bits do not depend on threads, nor on being called at once', async () => {
  const tensors = [[1, 3, 230, 20], [1, 3, 230, 24], [1, 1, 260, 24], [1, 1, 260, 20]].map((shape, i) => randomTensor(shape, i)); // prettier-ignore
  const options = {
    causal: true,
    bias: randomTensor([230, 260], 7),
    sinks: [[0.1, 0.2, 0.3]].flat(),
  };
  const two = await gradientsOf(engine, ...tensors, options);
  const one = await gradientsOf(single, ...tensors, options);
  const [dOutput, q, k, v] = tensors;
  const forward = engine.attentionSync(q, k, v, { ...options, ...forwardOptions });
  const sync = engine.attentionBackwardSync(
    dOutput,
    q,
    k,
    v,
    forward.output,
    forward.logSumExp,
    options,
  );
  for (const name of ['dq', 'dk', 'dv', 'dBias', 'dSinks']) {
    expectSame(one[name], two[name], name);
    expectSame(sync[name], two[name], name);
  }
});

test('hidden keys get exactly zero, whatever they hold; rows without a key give nothing', async () => {
  const tensors = [[1, 2, 6, 4], [1, 2, 6, 4], [1, 2, 8, 4], [1, 2, 8, 4]].map((shape, i) => randomTensor(shape, i)); // prettier-ignore
  const mask = {
    data: Uint8Array.from({ length: 48 }, (_, i) => Number(i % 8 !== 5 && i >= 8)),
    shape: [6, 8],
  };
  const clean = await gradientsOf(engine, ...tensors, { mask });
  const [dOutput, q, k, v] = tensors;
  for (const h of [0, 1]) {
    k.data.fill(NaN, (h * 8 + 5) * 4, (h * 8 + 6) * 4);
    v.data.fill(Infinity, (h * 8 + 5) * 4, (h * 8 + 6) * 4);
  }
  const got = await gradientsOf(engine, dOutput, q, k, v, { mask });
  for (const name of ['dq', 'dk', 'dv']) expectSame(got[name], clean[name], name);
  expectSame(got.dk.data.slice(20, 24), [0, 0, 0, 0]);
  expectSame(got.dv.data.slice(20, 24), [0, 0, 0, 0]);
  expectSame(got.dq.data.slice(0, 4), [0, 0, 0, 0]);
});

test('sizes of zero', async () => {
  const empty = (shape) => ({ data: new Float32Array(0), shape });
  const some = randomTensor([1, 1, 3, 4], 1);
  const noKeys = await gradientsOf(engine, some, some, empty([1, 1, 0, 4]), empty([1, 1, 0, 4]));
  expectSame(noKeys.dq, new Float32Array(12));
  const noQueries = await gradientsOf(engine, empty([1, 1, 0, 4]), empty([1, 1, 0, 4]), some, some);
  expectSame(noQueries.dk, new Float32Array(12));
});

test('what it refuses names the argument, and the engine works on', async () => {
  const t = randomTensor([1, 2, 3, 4], 1);
  const { output, logSumExp } = await engine.attention(t, t, t, forwardOptions);
  const call = (args, options) => {
    const all = { dOutput: t, q: t, k: t, v: t, output, logSumExp, ...args };
    return engine.attentionBackward(
      all.dOutput,
      all.q,
      all.k,
      all.v,
      all.output,
      all.logSumExp,
      options,
    );
  };
  const refuses = async (args, options, code, words) => {
    await expect(call(args, options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(words),
    });
  };
  await refuses({ dOutput: undefined }, {}, 'INVALID_TYPE', /dOutput/);
  await refuses(
    { dOutput: randomTensor([1, 2, 4, 3], 1) },
    {},
    'INVALID_SHAPE',
    /dOutput.*1,2,3,4.*1,2,4,3/,
  );
  await refuses({ output: randomTensor([24], 1) }, {}, 'INVALID_SHAPE', /^output/);
  await refuses({ logSumExp: randomTensor([1, 2, 4], 1) }, {}, 'INVALID_SHAPE', /logSumExp.*B,H,L/);
  await refuses({ k: randomTensor([1, 2, 3, 5], 1) }, {}, 'INVALID_SHAPE', /^k/);
  await refuses({}, { out: new Float32Array(24) }, 'INVALID_VALUE', /^out/);
  await refuses({}, { causl: true }, 'INVALID_VALUE', /causl/);
  await refuses({}, { signal: AbortSignal.abort() }, 'ABORTED', /./);
  const { dq } = await call({}, { returnLogSumExp: true, returnWeights: true });
  expect(dq.shape).toEqual([1, 2, 3, 4]);
});
