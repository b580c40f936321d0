// Demo, learning: the stored translation model in the page's own engine, for the walk-through. Fetched when first wanted.
import type { Engine, Transformer } from 'headwise';
import stored from '../../models/translation.safetensors?url';
import { translationClass } from './translation-state.ts';

const models = new WeakMap<Engine, Promise<Transformer>>();

async function load(engine: Engine): Promise<Transformer> {
  const { task } = translationClass();
  const response = await fetch(stored);
  if (!response.ok) throw new Error(`${stored}: ${response.status}`);
  const model = engine.transformer({ ...task.lesson.config, trainable: false });
  await model.load(await response.arrayBuffer());
  return model;
}

export function walkModel(engine: Engine): Promise<Transformer> {
  let model = models.get(engine);
  if (!model) {
    model = load(engine);
    models.set(engine, model);
    // The next one who asks may have more luck.
    model.catch(() => models.delete(engine));
  }
  return model;
}
