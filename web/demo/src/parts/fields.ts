// Demo, part: a labelled text field, a choice, a switch, a button.
import { freshId, h } from '../dom.ts';
import { say } from '../i18n/index.ts';
import type { Strings } from '../i18n/en.ts';

type Text = (strings: Strings) => string;

/** A sentence field. It grows with its text up to some lines, then scrolls. */
export function sentenceField(text: Text, value: string, onInput: (value: string) => void): { element: HTMLElement; input: HTMLTextAreaElement } {
  const id = freshId('field');
  const input = h('textarea', {
    id,
    rows: 1,
    spellcheck: 'false',
    autocomplete: 'off',
    dir: 'auto',
    oninput: () => onInput(input.value),
  });
  input.value = value;
  return { element: h('div.field', {}, say(h('label', { for: id }), text), input), input };
}

export function selectField<T extends string>(
  text: Text,
  choices: readonly T[],
  nameOf: (strings: Strings, choice: T) => string,
  initial: T,
  onChange: (choice: T) => void,
): HTMLElement {
  const id = freshId('field');
  const select = h('select', { id, onchange: () => onChange(select.value as T) });
  for (const choice of choices) {
    select.append(say(h('option', { value: choice }), (s) => nameOf(s, choice)));
  }
  select.value = initial;
  return h('div.field', {}, say(h('label', { for: id }), text), select);
}

export function checkField(text: Text, onChange: (checked: boolean) => void): HTMLElement {
  const input = h('input', { type: 'checkbox', onchange: () => onChange(input.checked) });
  return h('label.check', {}, input, say(h('span'), text));
}

export function button(text: Text, onClick: () => void, kind = ''): HTMLButtonElement {
  return say(h(kind ? `button.${kind}` : 'button', { type: 'button', onclick: onClick }), text);
}
