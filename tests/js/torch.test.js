// Tests: torch.nn.MultiheadAttention, fed its own state dict, gives what real PyTorch gave; and the way back, toTorch.

import { engineConfigurations, engineOf } from './configurations.js';
import { expectClose, expectSame } from './compare.js';
import { inverted, readFixtures, reshaped } from './fixtures.js';
import { otherFloat32 } from './tolerances.js';

const { cases } = readFixtures('torch');

/** The layer's masks are true = hidden in PyTorch; a rank-3 attn_mask is [B·H,L,S] there. */
function maskingOptions({ inputs, config }) {
  const { key_padding_mask: padding, attn_mask: mask, query } = inputs;
  const options = {};
  if (padding) options.keyPaddingMask = inverted(padding);
  if (mask) {
    const boolean = mask.data instanceof Uint8Array;
    let ours = boolean ? inverted(mask) : mask;
    if (mask.shape.length === 3) {
      ours = reshaped(ours, [query.shape[0], config.layer.numHeads, ...mask.shape.slice(1)]);
    }
    options[boolean ? 'mask' : 'bias'] = ours;
  }
  return options;
}

describe.each(engineConfigurations)('torch.nn.MultiheadAttention [$name]', (configuration) => {
  async function load({ config, weights }) {
    const engine = await engineOf(configuration);
    const layer = engine.multiHeadAttention(config.layer);
    await layer.loadTorch(weights);
    return layer;
  }

  test.each(cases)('$name', async (fixture) => {
    const layer = await load(fixture);
    const { query, key, value } = fixture.inputs;
    const { output, weights } = await layer.forward(query, key, value, {
      ...maskingOptions(fixture),
      returnWeights: true,
      averageWeights: fixture.config.torch.average_attn_weights,
    });
    expect(output.shape).toEqual(fixture.outputs.output.shape);
    expect(weights.shape).toEqual(fixture.outputs.weights.shape);
    expectClose(output, fixture.outputs.output, otherFloat32, 'output');
    expectClose(weights, fixture.outputs.weights, otherFloat32, 'weights');
    layer.dispose();
  });

  test.each(cases)('$name: toTorch returns what loadTorch took', async (fixture) => {
    const layer = await load(fixture);
    const state = await layer.toTorch();
    expect(Object.keys(state).sort()).toEqual(Object.keys(fixture.weights).sort());
    for (const [name, expected] of Object.entries(fixture.weights)) {
      expect(state[name].shape).toEqual(expected.shape);
      expectSame(state[name], expected, name);
    }
    layer.dispose();
  });
});
