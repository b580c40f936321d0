// Demo, learning: the translation lesson of the page, shared by its section and the walk-through. Made when first wanted.
import { translationLesson } from '../../../examples/lib/translation/lesson.mjs';
import stored from '../../models/translation.safetensors?url';
import { Classroom } from './classroom.ts';

export type TranslationTask = ReturnType<typeof translationLesson>;
type Measures = Awaited<ReturnType<TranslationTask['lesson']['measure']>>;

let shared: { task: TranslationTask; room: Classroom<Measures> } | null = null;

export function translationClass(): { task: TranslationTask; room: Classroom<Measures> } {
  if (!shared) {
    const task = translationLesson();
    shared = { task, room: new Classroom(task.lesson, stored) };
  }
  return shared;
}
