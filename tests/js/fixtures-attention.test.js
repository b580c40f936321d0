// Tests: engine.attention against torch.nn.functional.scaled_dot_product_attention, log-sum-exp included.

import { onEveryConfiguration } from './configurations.js';
import { expectClose } from './compare.js';
import { readFixtures } from './fixtures.js';
import { otherFloat32 } from './tolerances.js';

const { cases } = readFixtures('sdpa');

function options({ config, inputs }) {
  const mask = inputs.attn_mask;
  const { scale, is_causal: causal } = config;
  return {
    returnLogSumExp: true,
    ...(scale !== undefined && { scale }),
    ...(causal && { causal: true, causalOffset: 0 }), // PyTorch aligns top-left
    ...(mask && { [mask.data instanceof Uint8Array ? 'mask' : 'bias']: mask }),
  };
}

onEveryConfiguration('scaled_dot_product_attention of PyTorch', (attention) => {
  test.each(cases)('$name', async (fixture) => {
    const { q, k, v } = fixture.inputs;
    const { output, logSumExp } = await attention(q, k, v, options(fixture));
    expect(output.shape).toEqual(fixture.outputs.output.shape);
    expect(logSumExp.shape).toEqual(fixture.outputs.logSumExp.shape);
    expectClose(output, fixture.outputs.output, otherFloat32, 'output');
    expectClose(logSumExp, fixture.outputs.logSumExp, otherFloat32, 'log-sum-exp');
  });
});
