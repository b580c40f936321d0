// Example: the Keras layer of document 002, call(q, k, v, mask), which adds mask · −1e9 and returns output and weights.
//
//   output, weights = layer(q, k, v, mask)                                            in Keras
//   const { output, weights } = await layer.forward(q, k, v, { bias, returnWeights: true })   here, bias = mask · −1e9
import { createEngine } from 'headwise';
import { readFixture } from './lib/fixtures.mjs';
import { caseNamed, decode, runDocument002 } from './lib/keras.mjs';
import { largestDifference } from './lib/matrix.mjs';
import { engineLine, heading, matrix, say, shapeText } from './lib/print.mjs';

const fixture = await readFixture('documents');
const engine = await createEngine();

heading('Document 002: the Keras layer, call(q, k, v, mask), returns output and weights');
engineLine(engine);

for (const name of ['002_no_mask', '002_padding', '002_look_ahead', '002_fully_hidden_row']) {
  const stored = caseNamed(fixture, name);
  const { weights, difference } = await runDocument002(engine, stored);
  const [, , L, S] = weights.shape;
  matrix(
    `${name}: weights ${shapeText(weights.shape)}; sample 0, head 0`,
    weights.data.subarray(0, L * S),
    Array.from({ length: L }, (_, i) => `query ${i}`),
    Array.from({ length: S }, (_, j) => `key ${j}`),
  );
  say(
    `largest difference to TensorFlow ${fixture.versions.tensorflow}: ${difference.toExponential(1)}`,
  );
}

heading('The same mask, by selection');
say(
  'Adding −1e9 hides a key by arithmetic. A mask of headwise selects: true = may be attended to, so 1 − mask of Keras.',
);
const stored = caseNamed(fixture, '002_look_ahead');
const { q, k, v, mask } = stored.inputs;
const { embedDim, numHeads } = stored.config;
const layer = engine.multiHeadAttention({ embedDim, numHeads });
await layer.loadKeras(stored.weights.map(decode));
const keep = { data: Uint8Array.from(decode(mask).data, (hide) => 1 - hide), shape: mask.shape };
const selected = await layer.forward(decode(q), decode(k), decode(v), { mask: keep });
const difference = largestDifference(selected.output.data, decode(stored.outputs.output).data);
say(`002_look_ahead with mask instead of bias: largest difference ${difference.toExponential(1)}`);
say(
  'They part only where every key is hidden: adding gives the mean of all values, selecting gives zeros.',
);
layer.dispose();
engine.dispose();
