// Tests: the stored models of the page's lessons reach their marks on what was kept back, and a lesson can be left and resumed.

import { readFileSync } from 'node:fs';
import { createEngine } from 'headwise';
import { learn } from '../../web/examples/lib/learning/lesson.mjs';
import { measureUnseen, segmentationLesson } from '../../web/examples/lib/segmentation/lesson.mjs';
import { textLesson } from '../../web/examples/lib/text/lesson.mjs';
import { translationLesson } from '../../web/examples/lib/translation/lesson.mjs';
import { walkTrained } from '../../web/examples/lib/translation/walk.mjs';

const stored = (name) =>
  readFileSync(new URL(`../../web/demo/models/${name}.safetensors`, import.meta.url));

let engine;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine?.dispose());

async function storedModel(name, { lesson }) {
  const file = stored(name);
  expect(file.length).toBeLessThan(2_000_000);
  const model = engine.transformer({ ...lesson.config, trainable: false });
  await model.load(file);
  return model;
}

test('translation: 95 % of the pairs learned, 60 % of the recombinations kept back', async () => {
  const task = translationLesson();
  const model = await storedModel('translation', task);
  expect(await task.exactMatch(model, task.training)).toBeGreaterThanOrEqual(0.95);
  expect(await task.exactMatch(model, task.heldOut)).toBeGreaterThanOrEqual(0.6);
  const { text, unknown } = await task.translate(model, 'You’re welcome!');
  expect(text).toMatch(/^¡?De nada!?$/u);
  expect(unknown).toEqual([]);
  expect((await task.translate(model, 'I see a giraffe')).unknown).toEqual(['giraffe']);

  // One pass over the wanted words finds what greedy generation finds.
  const some = task.heldOut.slice(0, 12);
  let right = 0;
  for (const { source, target } of some) {
    const made = await model.generate(
      { source: [source] },
      { startToken: 1, endToken: 2, maxTokens: 19 },
    );
    right += Number([...made, 2].join() === target.join());
  }
  expect(await task.exactMatch(model, some)).toBeCloseTo(right / some.length, 12);
  model.dispose();
});

test('the walk-through has the very weights of attention that the model has', async () => {
  const task = translationLesson();
  const model = await storedModel('translation', task);
  const walk = await walkTrained(engine, model, task, 'You are welcome');
  expect(walk.target.tokens).toEqual(['<s>', 'de', 'nada', '<pad>']);
  const own = await model.attentionWeights(task.inputOf(['you', 'are', 'welcome'], ['de', 'nada']));
  for (const kind of ['encoder', 'decoder', 'cross']) {
    const [, heads, rows, columns] = own[kind][0].shape;
    const { weights } = walk[kind];
    // The walk has one padding token more on either side.
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++)
          expect(weights.data[(h * weights.shape[2] + i) * weights.shape[3] + j]).toBeCloseTo(
            own[kind][0].data[(h * rows + i) * columns + j],
            5,
          );
  }
  model.dispose();
});

test('text: perplexity at most 1.3 times that of the 5-gram model', async () => {
  const task = textLesson();
  const model = await storedModel('text', task);
  expect(await task.perplexity(model)).toBeLessThanOrEqual(1.3 * task.rival);
  let text = '';
  for await (const letter of task.write(model, 'Once', { length: 130, temperature: 0.5, seed: 1 }))
    text += letter;
  expect(text).toMatch(/^[A-Za-z ,.?"-]+$/u);
  model.dispose();
});

test('segmentation: mean IoU of at least 0.85 on unseen scenes', async () => {
  const model = await storedModel('segmentation', segmentationLesson());
  expect((await measureUnseen(model, 40)).meanIoU).toBeGreaterThanOrEqual(0.85);
  model.dispose();
});

test('a lesson that was left goes on with the epoch in which it stood', async () => {
  const { lesson } = segmentationLesson();
  const small = {
    ...lesson,
    epochs: 2,
    stepsPerEpoch: 2,
    *batches(epoch) {
      let left = 2;
      for (const batch of lesson.batches(epoch)) {
        if (left-- === 0) return;
        yield batch;
      }
    },
    measure: async () => null,
  };
  const model = engine.transformer(lesson.config);
  const controller = new AbortController();
  const kinds = [];
  const first = async () => {
    for await (const event of learn(model, small, controller.signal)) {
      kinds.push(event.kind);
      if (model.step === 3) controller.abort();
    }
  };
  await expect(first()).rejects.toThrow(/abort/iu);
  expect(kinds).toEqual(['step', 'step', 'epoch', 'step']);
  const epochs = [];
  for await (const event of learn(model, small)) epochs.push(event.epoch);
  expect(epochs).toEqual([2, 2, 2]);
  model.dispose();
});
