// Example: a decoder learns to write rhymes and tales, character by character, against a 5-gram model with back-off.
//
// `node learn-to-write.mjs` trains, measures and writes; a file name as argument stores the model there.
import { writeFile } from 'node:fs/promises';
import { createEngine } from 'headwise';
import { learn } from './lib/learning/lesson.mjs';
import { engineLine, heading, say } from './lib/print.mjs';
import { textLesson } from './lib/text/lesson.mjs';

const [file] = process.argv.slice(2);
const engine = await createEngine();
const { lesson, write } = textLesson();
const model = engine.transformer(lesson.config);

heading('Learning to write');
engineLine(engine);
for await (const event of learn(model, lesson)) {
  if (event.kind === 'step') continue;
  const { perplexity, rival } = event.measures;
  say(
    `epoch ${event.epoch}, ${event.seconds.toFixed(0)} s: perplexity of a character kept back ${perplexity.toFixed(3)}, ` +
      `${(perplexity / rival).toFixed(2)} times the 5-gram's ${rival.toFixed(3)} (mark: 1.3)`,
  );
}

for (const temperature of [0, 0.7, 1.1]) {
  heading(`“Once there was a”, temperature ${temperature}`);
  let text = 'Once there was a';
  for await (const letter of write(model, text, { length: 300, temperature, seed: 1 }))
    text += letter;
  say(text);
}
if (file) await writeFile(file, await model.save());
engine.dispose();
