// Tests: the bench's training models are what their names say: the translation lesson's own sizes, and a stored number for each.

import { readFileSync } from 'node:fs';
import { translationLesson } from '../../web/examples/lib/translation/lesson.mjs';

const read = (name) =>
  JSON.parse(readFileSync(new URL(`../bench/${name}`, import.meta.url), 'utf8'));
const models = read('training-models.json');

test("the translation lesson's model and its first batch", () => {
  const { lesson } = translationLesson();
  const model = models.find(({ name }) => name.includes('translation'));
  expect(lesson.config).toMatchObject(model.config);
  const [{ source, target }] = lesson.batches(1);
  expect(source.shape).toEqual([model.batch, model.sourceLength]);
  expect(target.shape).toEqual([model.batch, model.targetLength]);
});

test("PyTorch's stored numbers are of these sizes", () => {
  const { results } = read('stored/torch-training.json');
  for (const { name, config, batch, sourceLength, targetLength } of models) {
    const stored = results.filter((one) => one.name === name);
    expect(stored.map(({ threads }) => threads)).toEqual([1, 2]);
    for (const { sizes } of stored)
      expect(sizes).toEqual({ config, batch, sourceLength, targetLength });
  }
});
