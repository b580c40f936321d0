// Example: tf.keras.layers.MultiHeadAttention with its own weights.
//
//   output, scores = layer(query, value, key, return_attention_scores=True)           in Keras: value before key
//   const { output, weights } = await layer.forward(query, key, value, { returnWeights: true })   here: key before value
import { createEngine } from 'headwise';
import { readFixture } from './lib/fixtures.mjs';
import { caseNamed, runKerasLayer } from './lib/keras.mjs';
import { engineLine, heading, matrix, say, shapeText } from './lib/print.mjs';

const fixture = await readFixture('keras');
const engine = await createEngine();

heading('tf.keras.layers.MultiHeadAttention');
engineLine(engine);

for (const name of ['mha_self', 'mha_value_dim_differs', 'mha_causal']) {
  const stored = caseNamed(fixture, name);
  const { output, weights, difference } = await runKerasLayer(engine, stored);
  say(`\n${name}: ${JSON.stringify(stored.config.keras)} → ${JSON.stringify(stored.config.layer)}`);
  say(`output ${shapeText(output.shape)}`);
  const [, , L, S] = weights.shape;
  matrix(
    `weights ${shapeText(weights.shape)}; sample 0, head 0`,
    weights.data.subarray(0, L * S),
    Array.from({ length: L }, (_, i) => `query ${i}`),
    Array.from({ length: S }, (_, j) => `key ${j}`),
  );
  say(`largest difference to Keras ${fixture.versions.keras}: ${difference.toExponential(1)}`);
}
engine.dispose();
