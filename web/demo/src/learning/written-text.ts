// Demo, learning: a text as it is written, letter by letter. A letter that is pointed at, or reached by the arrow keys, shows by
// the background of those before it how much its making looked at each.
import { h } from '../dom.ts';
import { label } from '../i18n/index.ts';

export class WrittenText {
  readonly element = h('div.written', { tabindex: 0, role: 'application' });
  #letters: HTMLElement[] = [];
  #chosen = -1;
  /** How many of the first letters were given. */
  #given = 0;
  #onChoose: (index: number) => void;

  /** @param onChoose is told the letter's index, −1: none */
  constructor(onChoose: (index: number) => void) {
    this.#onChoose = onChoose;
    label(this.element, 'aria-label', (s) => s.learning.write.output);
    const at = (event: Event) =>
      event.target instanceof HTMLElement ? this.#letters.indexOf(event.target) : -1;
    this.element.addEventListener('pointerover', (event) => {
      const index = at(event);
      if (index >= 0) this.choose(index);
    });
    this.element.addEventListener('pointerdown', (event) => this.choose(at(event)));
    this.element.addEventListener('keydown', (event) => {
      const last = this.#letters.length - 1;
      const from = this.#chosen;
      let next: number;
      if (event.key === 'ArrowRight') next = Math.min(last, from + 1);
      else if (event.key === 'ArrowLeft') next = from < 0 ? last : Math.max(0, from - 1);
      else if (event.key === 'Home') next = 0;
      else if (event.key === 'End') next = last;
      else if (event.key === 'Escape') next = -1;
      else return;
      event.preventDefault();
      this.choose(next);
    });
  }

  get text(): string {
    return this.#letters.map((letter) => letter.textContent).join('');
  }

  begin(prompt: string): void {
    this.#letters = [];
    this.#chosen = -1;
    this.#given = [...prompt].length;
    this.element.replaceChildren();
    for (const letter of prompt) this.add(letter);
  }

  add(letter: string): void {
    const element = h(this.#letters.length < this.#given ? 'b' : 'span', {}, letter);
    this.#letters.push(element);
    this.element.append(element);
  }

  choose(index: number): void {
    if (index === this.#chosen) return;
    this.#letters[this.#chosen]?.classList.remove('chosen');
    this.#chosen = index;
    this.#letters[index]?.classList.add('chosen');
    this.shade(-1, []);
    this.#onChoose(index);
  }

  /** Colours letters from `first` on by shares; all others lose their colour. */
  shade(first: number, shares: ArrayLike<number>): void {
    const most = Math.max(0.001, ...Array.from(shares));
    this.#letters.forEach((letter, i) => {
      const share = first >= 0 ? (shares[i - first] ?? 0) : 0;
      const strength = share / most;
      letter.style.background =
        strength > 0.02
          ? `color-mix(in srgb, var(--accent) ${Math.round(strength * 60)}%, transparent)`
          : '';
    });
  }
}
