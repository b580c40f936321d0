// Tests: training from PyTorch's weights goes as PyTorch's training went: ten steps' losses and gradient norms.

import { createEngine } from 'headwise';
import { expectClose } from './compare.js';
import { inverted, readFixtures } from './fixtures.js';
import { otherTraining } from './tolerances.js';

const { cases } = readFixtures('training');
const runs = cases.flatMap((fixture) =>
  Object.entries(fixture.config.runs).map(([run, settings]) => ({
    name: `${fixture.name}, ${run}`,
    fixture,
    run,
    settings,
  })),
);

let engine;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 2 });
});
afterAll(() => engine.dispose());

// The stacks come as their modules' state dicts, what is around them by name.
async function modelOf({ config, weights }) {
  const model = engine.transformer(config.model);
  const inStack = (name) => /^(encoder|decoder)\./.test(name);
  const { kind } = config.model;
  const alone = kind === 'encoder-decoder' ? undefined : kind;
  const entries = Object.entries(weights);
  await model.loadTorch(
    Object.fromEntries(
      entries
        .filter(([name]) => inStack(name))
        .map(([name, value]) => [alone ? name.slice(alone.length + 1) : name, value]),
    ),
    alone,
  );
  await model.setWeights(Object.fromEntries(entries.filter(([name]) => !inStack(name))));
  expect(Object.keys(await model.getWeights()).sort()).toEqual(Object.keys(weights).sort());
  return model;
}

// By PyTorch's names; true = hidden there, and rank 3 is [B·H,L,S].
const masks = {
  src_mask: (bias, { model, batches }) => {
    const { data, shape } = bias;
    const split = [batches[0].source.length, model.numHeads, ...shape.slice(1)];
    return { sourceAttention: { bias: { data, shape: split } } };
  },
  tgt_mask: (bias) => ({ causal: false, targetAttention: { bias } }),
  memory_mask: (mask) => ({ memoryAttention: { mask: inverted(mask) } }),
  src_key_padding_mask: (mask) => ({ sourceMask: inverted(mask) }),
  tgt_key_padding_mask: (mask) => ({ targetMask: inverted(mask) }),
  memory_key_padding_mask: (mask) => ({ memoryMask: inverted(mask) }),
};

function batchesOf({ config, inputs }) {
  const { patches, ...given } = inputs;
  if (!patches) {
    const options = Object.entries(given).map(([name, mask]) => masks[name](mask, config));
    return config.batches.map((batch) => Object.assign({}, batch, ...options));
  }
  const [steps, ...shape] = patches.shape;
  const size = patches.data.length / steps;
  return config.batches.map((batch, i) => ({
    ...batch,
    patches: { data: patches.data.slice(i * size, (i + 1) * size), shape },
  }));
}

test.each(runs)('PyTorch: $name', async ({ fixture, run, settings }) => {
  const model = await modelOf(fixture);
  const { rates, ...options } = settings;
  const progress = [];
  for (const batch of batchesOf(fixture)) {
    progress.push(
      await model.trainStep(batch, { ...options, learningRate: (step) => rates[step - 1] }),
    );
  }
  const of = (key) => progress.map((step) => step[key]);
  expect(progress).toHaveLength(10);
  expectClose(of('loss'), fixture.outputs[`${run}.loss`], otherTraining, 'loss of step');
  expectClose(of('gradientNorm'), fixture.outputs[`${run}.norm`], otherTraining, 'norm of step');
  model.dispose();
});
