// Example: an encoder on patches learns to say what stands where in synthetic scenes.
//
// `node learn-to-segment.mjs` trains, measures and shows a scene; a file name as argument stores the model there.
import { writeFile } from 'node:fs/promises';
import { createEngine } from 'headwise';
import { learn } from './lib/learning/lesson.mjs';
import { engineLine, heading, percent, say } from './lib/print.mjs';
import { measureUnseen, segment, segmentationLesson, UNSEEN } from './lib/segmentation/lesson.mjs';
import { CLASSES, GRID, makeScene } from './lib/segmentation/scenes.mjs';

const [file] = process.argv.slice(2);
const engine = await createEngine();
const { lesson } = segmentationLesson();
const model = engine.transformer(lesson.config);

heading('Learning to see');
engineLine(engine);
for await (const event of learn(model, lesson)) {
  if (event.kind === 'step') continue;
  say(
    `${event.epoch * lesson.stepsPerEpoch} steps, ${event.seconds.toFixed(0)} s: ` +
      `mean IoU of unseen scenes ${event.measures.meanIoU.toFixed(3)} (mark: 0.85)`,
  );
}

const { meanIoU, perClass } = await measureUnseen(model, 200);
heading('200 unseen scenes');
say(
  `mean IoU ${meanIoU.toFixed(3)}; ${CLASSES.map((name, i) => `${name} ${percent(perClass[i])}`).join(', ')}`,
);

heading('One of them: truth and prediction');
const scene = makeScene(UNSEEN);
const said = await segment(model, [scene]);
const row = (classes, y) =>
  [...classes.slice(y * GRID, (y + 1) * GRID)].map((c) => '·PSC'[c]).join(' ');
for (let y = 0; y < GRID; y++) say(`${row(scene.truth, y)}     ${row(said, y)}`);
if (file) await writeFile(file, await model.save());
engine.dispose();
