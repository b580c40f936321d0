// Demo, heat map: the same numbers as a table. Large matrices are shown in pages, so that no page has thousands of elements.
import { h } from '../dom.ts';
import { t } from '../i18n/index.ts';
import { type MapData, valueText } from './data.ts';
import { shorten } from './painter.ts';

/** Rows and columns of a page of the table. */
const PAGE = 8;

export class ValueTable {
  readonly element = h('div.value-table', { hidden: true });
  #data: MapData | null = null;
  #title = '';
  #row = 0;
  #column = 0;

  get open(): boolean {
    return !this.element.hidden;
  }

  set open(open: boolean) {
    this.element.hidden = !open;
    this.#render();
  }

  show(data: MapData, title: string): void {
    const same =
      this.#data?.rows.labels.length === data.rows.labels.length &&
      this.#data?.columns.labels.length === data.columns.labels.length;
    if (!same) this.#row = this.#column = 0;
    this.#data = data;
    this.#title = title;
    this.#render();
  }

  #render(): void {
    const data = this.#data;
    if (!this.open || !data) {
      this.element.replaceChildren();
      return;
    }
    const s = t();
    const rows = data.rows.labels.length;
    const columns = data.columns.labels.length;
    const lastRow = Math.min(rows, this.#row + PAGE);
    const lastColumn = Math.min(columns, this.#column + PAGE);
    const head = h('tr', {}, h('td'));
    for (let column = this.#column; column < lastColumn; column++) {
      head.append(h('th', { scope: 'col' }, shorten(data.columns.labels[column], 16)));
    }
    const body = h('tbody');
    for (let row = this.#row; row < lastRow; row++) {
      const line = h('tr', {}, h('th', { scope: 'row' }, shorten(data.rows.labels[row], 16)));
      for (let column = this.#column; column < lastColumn; column++) {
        const index = row * columns + column;
        line.append(
          data.hidden?.[index]
            ? h('td.hidden-cell', {}, s.map.hidden)
            : h('td', {}, valueText(data.values[index])),
        );
      }
      body.append(line);
    }
    const table = h(
      'table',
      {},
      h('caption', {}, s.map.tableCaption(this.#title)),
      h('thead', {}, head),
      body,
    );
    const scroll = h(
      'div.table-scroll',
      { tabindex: 0, role: 'region', 'aria-label': s.map.tableCaption(this.#title) },
      table,
    );
    this.element.replaceChildren(scroll);
    if (rows > PAGE) {
      this.element.append(
        this.#pager(
          s.map.rows,
          s.map.earlierRows,
          s.map.laterRows,
          this.#row,
          lastRow,
          rows,
          (start) => (this.#row = start),
        ),
      );
    }
    if (columns > PAGE) {
      this.element.append(
        this.#pager(
          s.map.columns,
          s.map.earlierColumns,
          s.map.laterColumns,
          this.#column,
          lastColumn,
          columns,
          (start) => (this.#column = start),
        ),
      );
    }
  }

  #pager(
    kind: string,
    earlier: string,
    later: string,
    start: number,
    end: number,
    all: number,
    move: (start: number) => void,
  ): HTMLElement {
    const s = t();
    const button = (text: string, to: number, enabled: boolean) =>
      h(
        'button',
        {
          type: 'button',
          disabled: !enabled,
          onclick: () => {
            move(to);
            this.#render();
            // The button that was pressed is gone with the old page; its successor takes the focus.
            const again = [...this.element.querySelectorAll('button')].find(
              (b) => b.textContent === text,
            );
            if (again && !again.disabled) again.focus({ preventScroll: true });
            else
              this.element
                .querySelector<HTMLElement>('.table-scroll')
                ?.focus({ preventScroll: true });
          },
        },
        text,
      );
    return h(
      'div.pager',
      {},
      button(`‹ ${earlier}`, Math.max(0, start - PAGE), start > 0),
      h('span', {}, s.map.page(kind, start + 1, end, all)),
      button(`${later} ›`, start + PAGE, end < all),
    );
  }
}
