// Tests: the two layers printed in the documents, fed their own weights, give what real TensorFlow gave.

import { engineConfigurations, engineOf } from './configurations.js';
import { expectClose } from './compare.js';
import { readFixtures } from './fixtures.js';
import { otherFloat32 } from './tolerances.js';

const { cases } = readFixtures('documents');
const of = (document) => cases.filter(({ config }) => config.document === document);

/** `mask · −1e9`, as document 002 adds it to the scores: a finite bias, which hides nothing by itself. */
const asBias = ({ data, shape }) => ({ data: data.map((x) => x * -1e9), shape });

describe.each(engineConfigurations)('layers of the documents [$name]', (configuration) => {
  async function load({ config, weights }) {
    const engine = await engineOf(configuration);
    const layer = engine.multiHeadAttention({
      embedDim: config.embedDim,
      numHeads: config.numHeads,
    });
    await layer.loadKeras(weights);
    return layer;
  }

  test.each(of('000'))('document 000, call(v, k, q): $name', async (fixture) => {
    const layer = await load(fixture);
    const { q, k, v } = fixture.inputs;
    const { output } = await layer.forward(q, k, v);
    expect(output.shape).toEqual(fixture.outputs.output.shape);
    expectClose(output, fixture.outputs.output, otherFloat32);
    expectClose(layer.forwardSync(q, k, v).output, output, { absolute: 0, relative: 0 });
    layer.dispose();
  });

  test.each(of('002'))('document 002, call(q, k, v, mask): $name', async (fixture) => {
    const layer = await load(fixture);
    const { q, k, v, mask } = fixture.inputs;
    const options = { returnWeights: true, ...(mask && { bias: asBias(mask) }) };
    const { output, weights } = await layer.forward(q, k, v, options);
    expect(output.shape).toEqual(fixture.outputs.output.shape);
    expect(weights.shape).toEqual(fixture.outputs.weights.shape);
    expectClose(output, fixture.outputs.output, otherFloat32, 'output');
    expectClose(weights, fixture.outputs.weights, otherFloat32, 'weights');
    layer.dispose();
  });

  test('a mask that hides keys gives what mask · −1e9 gives, wherever a row has a visible key', async () => {
    for (const fixture of of('002').filter(({ name }) => /look_ahead|padding/.test(name))) {
      const layer = await load(fixture);
      const { q, k, v, mask } = fixture.inputs;
      const keep = { data: Uint8Array.from(mask.data, (x) => 1 - x), shape: mask.shape };
      const { output } = await layer.forward(q, k, v, { mask: keep });
      expectClose(output, fixture.outputs.output, otherFloat32, fixture.name);
      layer.dispose();
    }
  });
});
