// Demo, part: chooses a head, or their average. The entries are the heads there are, and a choice that is gone falls back to
// the first.
import { freshId, h } from '../dom.ts';
import { language, t } from '../i18n/index.ts';
import { createSignal } from '../signal.ts';

/** A head's index, from 0, or the mean of all. */
export type HeadChoice = number | 'average';

export class HeadPicker {
  readonly element = h('fieldset.head-picker');
  readonly choice = createSignal<HeadChoice>(0);
  #heads = 0;
  #name = freshId('head');
  #withAverage: boolean;

  constructor(heads: number, withAverage = true) {
    this.#withAverage = withAverage;
    this.setHeads(heads);
    language.watch(() => this.#render());
    this.choice.watch(() => this.#check());
  }

  setHeads(heads: number): void {
    if (heads === this.#heads) return;
    this.#heads = heads;
    const choice = this.choice.get();
    if (choice !== 'average' && choice >= heads) this.choice.set(0);
    this.#render();
  }

  #render(): void {
    const s = t();
    const entry = (choice: HeadChoice, text: string) =>
      h(
        'label',
        {},
        h('input', {
          type: 'radio',
          name: this.#name,
          value: String(choice),
          onchange: () => this.choice.set(choice),
        }),
        h('span', {}, text),
      );
    const entries = Array.from({ length: this.#heads }, (_, head) =>
      entry(head, s.heads.head(head + 1)),
    );
    if (this.#withAverage) entries.push(entry('average', s.heads.average));
    this.element.replaceChildren(h('legend', {}, s.heads.legend), ...entries);
    this.#check();
  }

  #check(): void {
    for (const input of this.element.querySelectorAll('input')) {
      input.checked = input.value === String(this.choice.get());
    }
  }
}
