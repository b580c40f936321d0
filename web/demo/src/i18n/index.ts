// Demo, words: the language, and how elements follow it. Texts are in en.ts and zh.ts.
import { createSignal } from '../signal.ts';
import { remember, remembered } from '../theme.ts';
import { rich } from '../dom.ts';
import { en, type Strings } from './en.ts';
import { zh } from './zh.ts';

export type Language = 'en' | 'zh';

const KEY = 'headwise-language';
const ALL: Record<Language, Strings> = { en, zh };

function initialLanguage(): Language {
  const chosen = remembered(KEY);
  if (chosen === 'en' || chosen === 'zh') return chosen;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export const language = createSignal<Language>(initialLanguage());

language.watch((value) => {
  document.documentElement.lang = value === 'zh' ? 'zh-Hans' : 'en';
  document.title = ALL[value].title;
});

export function toggleLanguage(): void {
  language.set(language.get() === 'zh' ? 'en' : 'zh');
  remember(KEY, language.get());
}

const told = createSignal(0);

/** Tells all texts anew: some hold numbers that have changed. */
export function retell(): void {
  told.set(told.get() + 1);
}

/** The texts of the language in force. */
export function t(): Strings {
  return ALL[language.get()];
}

/** Keeps an element's text in the reader's language. */
export function say<E extends HTMLElement>(element: E, text: (strings: Strings) => string): E {
  const tell = () => element.replaceChildren(...rich(text(t())));
  language.watch(tell);
  told.changed(tell);
  return element;
}

/** The same for an attribute. */
export function label<E extends HTMLElement>(
  element: E,
  name: string,
  text: (strings: Strings) => string,
): E {
  language.watch(() => element.setAttribute(name, text(t())));
  return element;
}
