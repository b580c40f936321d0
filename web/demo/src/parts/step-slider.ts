// Demo, part: a slider over the steps of a training. It follows the newest step until the reader takes hold of it.
import { freshId, h } from '../dom.ts';
import { language, say, t } from '../i18n/index.ts';
import { createSignal, type Signal } from '../signal.ts';
import type { Strings } from '../i18n/en.ts';

export interface StepSlider {
  element: HTMLElement;
  /** The step shown, from 1; 0: none yet. */
  value: Signal<number>;
  /** There are so many steps now. */
  grow(steps: number): void;
  reset(): void;
  /** Calls back when the reader moves it. */
  moved(callback: () => void): void;
}

export function stepSlider(text: (strings: Strings) => string): StepSlider {
  const id = freshId('slider');
  const value = createSignal(0);
  const moves: (() => void)[] = [];
  const output = h('output', { for: id });
  const input = h('input', {
    id,
    type: 'range',
    min: 1,
    max: 1,
    value: 1,
    oninput: () => {
      value.set(Number(input.value));
      moves.forEach((callback) => callback());
    },
  });
  const element = h(
    'div.field.step-slider',
    { hidden: true },
    say(h('label', { for: id }), text),
    h('div.slider-row', {}, input, output),
  );
  const words = () => {
    output.textContent = t().learning.stepOf(value.get(), Number(input.max));
  };
  value.watch(words);
  language.watch(words);
  return {
    element,
    value,
    grow(steps) {
      const atEnd = value.get() === 0 || value.get() === Number(input.max);
      input.max = String(steps);
      element.hidden = false;
      if (atEnd) {
        input.value = String(steps);
        value.set(steps);
      } else words();
    },
    reset() {
      input.max = '1';
      value.set(0);
      element.hidden = true;
    },
    moved: (callback) => void moves.push(callback),
  };
}
