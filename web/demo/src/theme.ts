// Demo: light or dark. The system's choice until the reader makes one, which is remembered.
import { createSignal } from './signal.ts';

export type Theme = 'light' | 'dark';

const KEY = 'headwise-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

/** Storage may be forbidden (private windows, sandboxed frames); the page works without it. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Nothing to do: the choice lasts as long as the page.
  }
}

function initialTheme(): Theme {
  const chosen = remembered(KEY);
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return system.matches ? 'dark' : 'light';
}

export const theme = createSignal<Theme>(initialTheme());

theme.watch((value) => {
  document.documentElement.dataset.theme = value;
});
system.addEventListener('change', () => {
  if (remembered(KEY) === null) theme.set(system.matches ? 'dark' : 'light');
});

export function toggleTheme(): void {
  theme.set(theme.get() === 'dark' ? 'light' : 'dark');
  remember(KEY, theme.get());
}
