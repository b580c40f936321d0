// Demo, part: the tokens of a sentence as a row of chips. Pointing at one lights it up in every map.
import { h } from '../dom.ts';
import { label, say } from '../i18n/index.ts';
import type { Strings } from '../i18n/en.ts';
import { pointedIndices, pointedTokens } from '../heatmap/linked.ts';
import { walk } from '../walk-state.ts';

export function tokenRow(
  side: 'source' | 'target',
  title: (strings: Strings) => string,
): HTMLElement {
  const list = h('ol.tokens');
  label(list, 'aria-label', title);
  walk.watch((now) => {
    const sequence = now?.[side];
    if (!sequence) return;
    list.replaceChildren(
      ...sequence.tokens.map((token, index) => {
        const chip = h(
          'li',
          {
            onpointerenter: () => pointedTokens.set([{ sequence: side, index }]),
            onpointerleave: () => pointedTokens.set([]),
          },
          h('span.token', { dir: 'auto' }, token),
          h('span.token-id', {}, String(sequence.ids[index])),
        );
        if (!sequence.keep[index]) chip.classList.add('padding');
        return chip;
      }),
    );
  });
  pointedTokens.watch((places) => {
    const lit = pointedIndices(places, side);
    [...list.children].forEach((chip, index) => chip.classList.toggle('lit', lit.has(index)));
  });
  return h('div.token-row', {}, say(h('h4'), title), list);
}
