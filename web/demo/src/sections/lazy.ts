// Demo, section: a section whose body is made when the reader comes near: its corpus, its vocabulary and its maps cost time that
// the page's start shall not pay.
import { h } from '../dom.ts';
import { whenNear } from '../learning/near.ts';

/** @returns the place where the body will be; it is kept tall until then, so that links to later sections land well. */
export function lazyBody(build: () => readonly HTMLElement[]): HTMLElement {
  const body = h('div.lazy-body');
  whenNear(body, () => {
    body.append(...build());
    body.classList.add('built');
  });
  return body;
}
