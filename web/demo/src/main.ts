// Demo: puts the page together. The words stand at once; the engine starts beside them, and each section shows its numbers as
// they come. Start reading at sections/walkthrough.ts.
import './style/base.css';
import './style/layout.css';
import './style/sections.css';
import './style/figures.css';
import './style/learning.css';
import { h } from './dom.ts';
import { label, language, say, t, toggleLanguage } from './i18n/index.ts';
import type { Strings } from './i18n/en.ts';
import { theme, toggleTheme } from './theme.ts';
import { engineState, startEngine } from './engine-host.ts';
import { button } from './parts/fields.ts';
import { introSection } from './sections/intro.ts';
import { walkSection } from './sections/walkthrough.ts';
import { kindsSection } from './sections/kinds.ts';
import { translateSection } from './sections/translate.ts';
import { writeSection } from './sections/write.ts';
import { segmentSection } from './sections/segment.ts';
import { kerasSection } from './sections/keras.ts';
import { variantsSection } from './sections/variants.ts';
import { engineSection } from './sections/engine-panel.ts';

const SECTIONS = [
  ['steps', (s) => s.walk.nav],
  ['attentions', (s) => s.kinds.nav],
  ['translate', (s) => s.learning.nav.translate],
  ['write', (s) => s.learning.nav.write],
  ['segment', (s) => s.learning.nav.segment],
  ['keras', (s) => s.keras.nav],
  ['variants', (s) => s.variants.nav],
  ['engine', (s) => s.engine.nav],
] satisfies [string, (strings: Strings) => string][];

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
  const links = SECTIONS.map(([id, name]) => say(h('a', { href: `#${id}` }), name));
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
    translateSection(),
    writeSection(),
    segmentSection(),
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
