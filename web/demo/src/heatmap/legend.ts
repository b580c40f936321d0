// Demo, heat map: the colour scale in words and colour. It always says what 0 and the darkest colour mean.
import { h } from '../dom.ts';
import { label, say } from '../i18n/index.ts';
import { theme } from '../theme.ts';
import { type ColourScale, valueText } from './data.ts';
import { gradientOf } from './palette.ts';

export interface Legend {
  element: HTMLElement;
  show(scale: ColourScale, withHidden: boolean): void;
}

/** Short numbers for the ends: 1, 0.25, −2.31. */
function endText(value: number): string {
  return Number.isInteger(value)
    ? String(value).replace('-', '−')
    : valueText(value).replace(/0+$/u, '').replace(/\.$/u, '');
}

export function createLegend(): Legend {
  const low = h('span');
  const middle = h('span');
  const high = h('span');
  const bar = h('span.legend-bar', { 'aria-hidden': 'true' });
  const hidden = h(
    'span.legend-hidden',
    {},
    h('span.legend-hatch', { 'aria-hidden': 'true' }),
    say(h('span'), (s) => s.map.legendHidden),
  );
  const element = h(
    'div.legend',
    { role: 'group' },
    h('div.legend-scale', {}, bar, h('div.legend-ends', {}, low, middle, high)),
    hidden,
  );
  label(element, 'aria-label', (s) => s.map.legend);
  let current: ColourScale = { kind: 'share', max: 1 };
  const colour = () => {
    bar.style.background = gradientOf(current, theme.get());
  };
  theme.watch(colour);
  return {
    element,
    show(scale, withHidden) {
      current = scale;
      colour();
      low.textContent = scale.kind === 'signed' ? endText(-scale.max) : '0';
      middle.textContent = scale.kind === 'signed' ? '0' : '';
      high.textContent = endText(scale.max);
      element.dataset.max = String(scale.max);
      hidden.hidden = !withHidden;
    },
  };
}
