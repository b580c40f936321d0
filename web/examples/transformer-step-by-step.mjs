// Example: document 001 step by step. "You are welcome" → "De nada", embedding size 6, query size 3, 2 heads.
//
// The weights are start weights, drawn from a seed and not trained: the steps and shapes are a Transformer's, the meaning of the
// numbers is not. `node transformer-step-by-step.mjs "a sentence" "ein Satz"` takes sentences of your own.
import { createEngine } from 'headwise';
import { headOf } from './lib/matrix.mjs';
import { engineLine, heading, matrix, say, shapeText } from './lib/print.mjs';
import { SAMPLE, SIZES, walkThrough } from './lib/transformer.mjs';

const [source = SAMPLE.source, target = SAMPLE.target] = process.argv.slice(2);
const engine = await createEngine();
const run = await walkThrough(engine, { source, target, limit: 12 });
const { encoder, decoder, cross } = run;
const columns = (count) => Array.from({ length: count }, (_, i) => `d${i + 1}`);
const E = columns(SIZES.embedding);
const D = columns(SIZES.query);
const words = run.source.tokens;

heading('Document 001: multi-head attention step by step');
engineLine(engine);
say(`source: ${words.join(' ')}    target: ${run.target.tokens.join(' ')}`);
say(
  `embedding size ${SIZES.embedding}, heads ${SIZES.heads}, query size ${SIZES.embedding} / ${SIZES.heads} = ${SIZES.query}`,
);

heading('1. Embedding and position encoding');
matrix(`embedding ${shapeText(run.source.embedding.shape)}`, run.source.embedding.data, words, E);
matrix(`position ${shapeText(run.source.position.shape)}`, run.source.position.data, words, E);
matrix(
  `their sum, the input ${shapeText(run.source.input.shape)}`,
  run.source.input.data,
  words,
  E,
);

heading('2. Three linear layers');
matrix(
  `weights of the query layer ${shapeText(encoder.kernels.query.shape)}`,
  encoder.kernels.query.data,
  E,
  E,
);
matrix(`Q ${shapeText(encoder.q.shape)}`, encoder.q.data, words, E);
matrix(`K ${shapeText(encoder.k.shape)}`, encoder.k.data, words, E);
matrix(`V ${shapeText(encoder.v.shape)}`, encoder.v.data, words, E);

heading('3. Split into heads: logical, nothing moves');
say(`linear layer      ${shapeText(encoder.q.shape)}   batch, sequence, embedding`);
say(`reshape           ${shapeText(encoder.qSplit.shape)}   batch, sequence, heads, query size`);
say(`swap two axes     ${shapeText(encoder.qHeads.shape)}   batch, heads, sequence, query size`);
for (let head = 0; head < SIZES.heads; head++) {
  matrix(`Q of head ${head + 1}`, headOf(encoder.qHeads, head), words, D);
}

heading('4. Scores of each head: Q·Kᵀ, mask, ÷ √3, softmax, · V');
for (let head = 0; head < SIZES.heads; head++) {
  matrix(`head ${head + 1}: Q·Kᵀ`, headOf(encoder.products, head), words, words);
  matrix(`head ${head + 1}: padding hidden`, headOf(encoder.masked, head), words, words);
  matrix(`head ${head + 1}: divided by √3`, headOf(encoder.scaled, head), words, words);
  matrix(
    `head ${head + 1}: softmax, each row sums to 1`,
    headOf(encoder.weights, head),
    words,
    words,
  );
  matrix(`head ${head + 1}: weights · V`, headOf(encoder.headOutputs, head), words, D);
}

heading('5. Merge');
say(`heads             ${shapeText(encoder.headOutputs.shape)}`);
say(`swap and reshape  ${shapeText(encoder.merged.shape)}`);
matrix('merged', encoder.merged.data, words, E);
matrix('through the output layer', encoder.output.data, words, E);
say(`largest difference to the layer called once: ${encoder.difference.toExponential(1)}`);

heading('6. The three attentions');
for (const [title, steps] of [
  ['encoder self-attention, padding mask', encoder],
  ['decoder self-attention, padding and causal mask', decoder],
  ['encoder–decoder attention: queries from the target, keys and values from the source', cross],
]) {
  for (let head = 0; head < SIZES.heads; head++) {
    matrix(
      `${title}: head ${head + 1}`,
      headOf(steps.weights, head),
      steps.queries.tokens,
      steps.keys.tokens,
    );
  }
}
engine.dispose();
