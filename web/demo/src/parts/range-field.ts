// Demo, part: a labelled slider for a number.
import { freshId, h } from '../dom.ts';
import { say } from '../i18n/index.ts';
import type { Strings } from '../i18n/en.ts';

export function rangeField(
  text: (strings: Strings) => string,
  range: { min: number; max: number; step: number; value: number },
  onInput: (value: number) => void,
): HTMLElement {
  const id = freshId('range');
  const output = h('output', { for: id }, String(range.value));
  const input = h('input', {
    id,
    type: 'range',
    ...range,
    oninput: () => {
      output.textContent = input.value;
      onInput(Number(input.value));
    },
  });
  return h(
    'div.field.step-slider',
    {},
    say(h('label', { for: id }), text),
    h('div.slider-row', {}, input, output),
  );
}
