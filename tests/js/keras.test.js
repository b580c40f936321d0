// Tests: keras.layers.MultiHeadAttention and GroupQueryAttention, fed their own weights, give what real Keras gave.

import { engineConfigurations, engineOf } from './configurations.js';
import { expectClose } from './compare.js';
import { readFixtures, reshaped } from './fixtures.js';
import { otherFloat32 } from './tolerances.js';

const { cases } = readFixtures('keras');

/** Keras's call options as headwise's. */
function maskingOptions({ inputs, config }) {
  const { attention_mask: mask, key_mask: keys, value_mask: values } = inputs;
  const options = {};
  if (mask) {
    const [batch, queries, length] = mask.shape; // [B,L,S] there; rank 3 is [H,L,S] here
    options.mask = reshaped(mask, [batch, 1, queries, length]);
  }
  // Keras takes a key into account where both masks are true.
  if (keys && values) {
    options.keyPaddingMask = {
      data: keys.data.map((x, i) => x & values.data[i]),
      shape: keys.shape,
    };
  }
  if (config.keras.use_causal_mask) Object.assign(options, { causal: true, causalOffset: 0 });
  return options;
}

describe.each(engineConfigurations)('layers of Keras [$name]', (configuration) => {
  test.each(cases)('$name', async (fixture) => {
    const engine = await engineOf(configuration);
    const layer = engine.multiHeadAttention(fixture.config.layer);
    await layer.loadKeras(fixture.weights);
    const { query, key, value } = fixture.inputs;
    const expected = fixture.outputs;
    const options = { ...maskingOptions(fixture), returnWeights: Boolean(expected.weights) };
    const { output, weights } = await layer.forward(query, key, value, options);
    expect(output.shape).toEqual(expected.output.shape);
    expectClose(output, expected.output, otherFloat32, 'output');
    if (expected.weights) {
      expect(weights.shape).toEqual(expected.weights.shape);
      expectClose(weights, expected.weights, otherFloat32, 'weights');
    }
    layer.dispose();
  });
});

test('wrong numbers of arrays are refused, and the layer keeps its weights', async () => {
  const engine = await engineOf(engineConfigurations[0]);
  const { config, weights } = cases[0];
  const layer = engine.multiHeadAttention(config.layer);
  await layer.loadKeras(weights);
  const before = await layer.getWeights();
  await expect(layer.loadKeras(weights.slice(0, 7))).rejects.toThrow(Error);
  const wrongShape = [
    ...weights.slice(0, 6),
    { data: new Float32Array(4), shape: [2, 2, 1] },
    weights[7],
  ];
  await expect(layer.loadKeras(wrongShape)).rejects.toThrow(RangeError);
  const after = await layer.getWeights();
  expect(after.query.kernel.toArray()).toEqual(before.query.kernel.toArray());
  expect(after.output.kernel.toArray()).toEqual(before.output.kernel.toArray());
  layer.dispose();
});
