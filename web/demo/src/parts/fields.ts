// Demo, part: a labelled text field, a choice, a switch, a button.
import { freshId, h } from '../dom.ts';
import { say } from '../i18n/index.ts';
import type { Strings } from '../i18n/en.ts';

type Text = (strings: Strings) => string;

const RIGHT_TO_LEFT =
  /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/**
 * The direction of a text, by its first letter. The attribute `dir="auto"` would find it too, but lays the whole text out anew at
 * every key: half a second for 20,000 words, where this takes none.
 */
function directionOf(text: string): 'rtl' | 'ltr' {
  const letter = /\p{L}/u.exec(text.slice(0, 1000));
  return letter && RIGHT_TO_LEFT.test(letter[0]) ? 'rtl' : 'ltr';
}

/** A sentence field. It grows with its text up to some lines, then scrolls. */
export function sentenceField(
  text: Text,
  value: string,
  onInput: (value: string) => void,
): { element: HTMLElement; input: HTMLTextAreaElement } {
  const id = freshId('field');
  const input = h('textarea', {
    id,
    rows: 1,
    spellcheck: 'false',
    autocomplete: 'off',
    dir: directionOf(value),
    oninput: () => {
      input.dir = directionOf(input.value);
      onInput(input.value);
    },
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
