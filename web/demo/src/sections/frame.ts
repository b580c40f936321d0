// Demo, section: what all sections share: a heading, its source, text; and a step with words on the left and figures beside.
import { h } from '../dom.ts';
import { say } from '../i18n/index.ts';
import type { Strings } from '../i18n/en.ts';

type Text = (strings: Strings) => string;

export function sectionFrame(
  id: string,
  title: Text,
  source: Text | null,
  ...paragraphs: Text[]
): HTMLElement {
  const headingId = `${id}-title`;
  return h(
    'section',
    { id, 'aria-labelledby': headingId },
    h(
      'header.section-head',
      {},
      say(h('h2', { id: headingId }), title),
      source ? say(h('p.source'), source) : null,
      ...paragraphs.map((text) => say(h('p'), text)),
    ),
  );
}

/** One step: one idea. */
export function step(
  number: number | null,
  title: Text,
  text: Text,
  options: { code?: string; extra?: HTMLElement[]; figures: HTMLElement[] },
): HTMLElement {
  const heading = h(
    'h3',
    {},
    number === null ? null : h('span.step-number', { 'aria-hidden': 'true' }, String(number)),
    say(h('span'), title),
  );
  return h(
    'article.step',
    {},
    h(
      'div.step-text',
      {},
      heading,
      say(h('p'), text),
      options.code ? codeBlock(options.code) : null,
      ...(options.extra ?? []),
    ),
    h('div.step-figures', {}, ...options.figures),
  );
}

export function codeBlock(code: string): HTMLElement {
  return h('pre.code', { tabindex: 0 }, h('code', {}, code));
}

export function shapeText(shape: readonly number[]): string {
  return `(${shape.join(', ')})`;
}
