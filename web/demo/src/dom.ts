// Demo: making elements. `h` builds one, `rich` turns the little markup of the translations into nodes.

type Child = Node | string | null | undefined | false;

/** Attributes as HTML spells them; `on…` entries are listeners, booleans set or leave out an attribute. */
export type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

/** Builds an element: `h('p.note', { id: 'x' }, 'text')`. Classes follow the tag's name after dots. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name) as HTMLElementTagNameMap[K];
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** `code` in backticks and **strong** words; nothing else, and never HTML. */
export function rich(text: string): Node[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/u).map((piece) => {
    if (piece.startsWith('`')) return h('code', {}, piece.slice(1, -1));
    if (piece.startsWith('**')) return h('strong', {}, piece.slice(2, -2));
    return document.createTextNode(piece);
  });
}

let lastId = 0;

/** An id that no other element has. */
export function freshId(prefix: string): string {
  return `${prefix}-${++lastId}`;
}
