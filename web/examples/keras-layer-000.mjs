// Example: the Keras layer of document 000, call(v, k, q) and no mask, with TensorFlow's own weights.
//
//   output = layer(v, k, q)                                    in Keras
//   const { output } = await layer.forward(q, k, v)            here
import { createEngine } from 'headwise';
import { readFixture } from './lib/fixtures.mjs';
import { caseNamed, runDocument000 } from './lib/keras.mjs';
import { engineLine, heading, matrix, say, shapeText } from './lib/print.mjs';

const fixture = await readFixture('documents');
const engine = await createEngine();

heading('Document 000: the Keras layer, call(v, k, q), no mask');
engineLine(engine);
say(
  'Its four Dense layers go into the layer as get_weights() returns them: loadKeras([wq, bq, wk, bk, wv, bv, w, b]).',
);

for (const name of ['000_self', '000_cross']) {
  const stored = caseNamed(fixture, name);
  const { output, difference } = await runDocument000(engine, stored);
  const [, L, E] = output.shape;
  const rows = Array.from({ length: L }, (_, i) => `token ${i}`);
  const { embedDim, numHeads } = stored.config;
  matrix(
    `${name}: d_model ${embedDim}, ${numHeads} heads, output ${shapeText(output.shape)}; sample 0, first 6 columns`,
    rows.flatMap((_, i) => Array.from(output.data.subarray(i * E, i * E + 6))),
    rows,
  );
  say(
    `largest difference to TensorFlow ${fixture.versions.tensorflow}: ${difference.toExponential(1)}`,
  );
}
engine.dispose();
