// Demo: puts the page together. The words stand at once; the engine starts beside them, and each section shows its numbers as
// they come. Start reading at sections/walkthrough.ts.
import './style/base.css';
import './style/layout.css';
import './style/sections.css';
import './style/figures.css';
import { h } from './dom.ts';
import { label, language, say, t, toggleLanguage } from './i18n/index.ts';
import { theme, toggleTheme } from './theme.ts';
import { engineState, startEngine } from './engine-host.ts';
import { button } from './parts/fields.ts';
import { introSection } from './sections/intro.ts';
import { walkSection } from './sections/walkthrough.ts';
import { kindsSection } from './sections/kinds.ts';
import { kerasSection } from './sections/keras.ts';
import { variantsSection } from './sections/variants.ts';
import { engineSection } from './sections/engine-panel.ts';

const SECTIONS = [
  ['steps', 'walk'],
  ['attentions', 'kinds'],
  ['keras', 'keras'],
  ['variants', 'variants'],
  ['engine', 'engine'],
] as const;

function topBar(): HTMLElement {
  const languageButton = h('button.quiet', { type: 'button', onclick: toggleLanguage });
  language.watch((now) => {
    languageButton.textContent = t().languageName;
    languageButton.lang = now === 'zh' ? 'en' : 'zh-Hans';
    languageButton.setAttribute('aria-label', t().switchLanguage);
  });
  const themeButton = h(
    'button.quiet.theme-toggle',
    { type: 'button', onclick: toggleTheme },
    h('span', { 'aria-hidden': 'true' }),
  );
  const name = () => {
    themeButton.setAttribute(
      'aria-label',
      theme.get() === 'dark' ? t().themeToLight : t().themeToDark,
    );
    themeButton.title = themeButton.getAttribute('aria-label') ?? '';
  };
  theme.watch(name);
  language.watch(name);
  const links = SECTIONS.map(([id, key]) => say(h('a', { href: `#${id}` }), (s) => s[key].nav));
  const nav = label(h('nav', {}, ...links), 'aria-label', (s) => s.contents);
  return h(
    'header.top',
    {},
    h('a.mark', { href: '#heads' }, 'headwise'),
    nav,
    h('div.switches', {}, languageButton, themeButton),
  );
}

function failure(): HTMLElement {
  const reason = h('p');
  const element = h(
    'aside.failure',
    { role: 'alert', hidden: true },
    say(h('h2'), (s) => s.status.failedTitle),
    reason,
    button(
      (s) => s.status.retry,
      () => void startEngine(),
    ),
  );
  engineState.watch((state) => {
    element.hidden = state.kind !== 'failed';
    reason.textContent = state.kind === 'failed' ? state.reason : '';
  });
  return element;
}

document.getElementById('page')?.replaceWith(
  say(h('a.skip', { href: '#heads' }), (s) => s.skip),
  topBar(),
  h(
    'main',
    {},
    failure(),
    introSection(),
    walkSection(),
    kindsSection(),
    kerasSection(),
    variantsSection(),
    engineSection(),
  ),
  h(
    'footer',
    {},
    say(h('p'), (s) => s.footer),
  ),
);
void startEngine();
