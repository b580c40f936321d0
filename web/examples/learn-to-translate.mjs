// Example: document 001's Transformer learns to translate English into Spanish, from nothing, here.
//
// `node learn-to-translate.mjs` trains, measures and translates; `node learn-to-translate.mjs model.safetensors` also stores
// the model there.
import { writeFile } from 'node:fs/promises';
import { createEngine } from 'headwise';
import { learn } from './lib/learning/lesson.mjs';
import { headOf } from './lib/matrix.mjs';
import { engineLine, heading, matrix, percent, say } from './lib/print.mjs';
import { translationLesson } from './lib/translation/lesson.mjs';

const [file] = process.argv.slice(2);
const engine = await createEngine();
const { lesson, training, heldOut, exactMatch, translate, inputOf } = translationLesson();
const model = engine.transformer(lesson.config);

heading('Learning to translate');
engineLine(engine);
say(`${training.length} pairs to learn from, ${heldOut.length} recombinations kept back`);
let losses = [];
let seconds = 0;
for await (const event of learn(model, lesson)) {
  if (event.kind === 'step') {
    losses.push(event.progress.loss);
    continue;
  }
  const { training: learned, heldOut: unseen, shown } = event.measures;
  ({ seconds } = event);
  const loss = losses.reduce((sum, value) => sum + value, 0) / losses.length;
  losses = [];
  say(
    `epoch ${event.epoch}, ${seconds.toFixed(0)} s: loss ${loss.toFixed(3)}, ` +
      `exact match ${percent(learned)} learned, ${percent(unseen)} kept back; ` +
      `${shown[0].source} → ${shown[0].target}`,
  );
}

heading('What it has learned');
say(
  `exact match of all training pairs: ${percent(await exactMatch(model, training))} (mark: 95 %)`,
);
say(`of the recombinations kept back:   ${percent(await exactMatch(model, heldOut))} (mark: 60 %)`);
say(`seconds of training: ${seconds.toFixed(0)} (mark: 90, on two cores)`);
for (const text of ['You are welcome', 'My sister wants a red car', 'They are not hungry']) {
  const { text: spanish, unknown } = await translate(model, text);
  say(`${text} → ${spanish}${unknown.length > 0 ? ` (never seen: ${unknown.join(', ')})` : ''}`);
}

heading('What its heads look at: “You are welcome” → “De nada”');
const { sourceWords, targetWords } = await translate(model, 'You are welcome');
const { cross } = await model.attentionWeights(inputOf(sourceWords, targetWords));
cross.forEach((weights, layer) => {
  for (let head = 0; head < weights.shape[1]; head++) {
    matrix(
      `encoder–decoder attention, layer ${layer + 1}, head ${head + 1}`,
      headOf(weights, head),
      ['<s>', ...targetWords],
      [...sourceWords, '</s>'],
    );
  }
});
if (file) await writeFile(file, await model.save());
engine.dispose();
