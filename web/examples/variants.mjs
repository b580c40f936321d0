// Example: document 002's variants of the layer. Concatenated or summed heads, dense or convolutional transforms, four scores.
import { createEngine } from 'headwise';
import { headOf, largestDifference } from './lib/matrix.mjs';
import { engineLine, heading, matrix, say, shapeText } from './lib/print.mjs';
import { CHOICES, PLAIN_VARIANT, runVariant } from './lib/variants.mjs';

const text = process.argv[2] ?? 'You are welcome and we are glad';
const engine = await createEngine();

heading('Document 002: variants of multi-head attention');
engineLine(engine);
say(`sentence: ${text}`);
const plain = await runVariant(engine, text, PLAIN_VARIANT);
if (!plain) throw new RangeError('the sentence is empty');

for (const [option, values] of Object.entries(CHOICES)) {
  heading(option);
  for (const value of values) {
    const run = await runVariant(engine, text, { ...PLAIN_VARIANT, [option]: value });
    const kernels = run.kernels.map(({ name, shape }) => `${name} ${shapeText(shape)}`).join('  ');
    matrix(`${option} '${value}': head 1`, headOf(run.weights, 0), run.tokens, run.tokens);
    say(`kernels: ${kernels}; ${run.parameters} numbers in all`);
    const difference = largestDifference(run.output.data, plain.output.data);
    say(
      `output ${shapeText(run.output.shape)}, largest difference to the plain layer: ${difference.toFixed(3)}`,
    );
  }
}
engine.dispose();
