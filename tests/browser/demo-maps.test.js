// Tests, browser: the demo's parts by themselves, from their sources: heat map, colours, head picker. Faults F3, F5, F6.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { errorsIn, launchChromium, openPage } from './support/chromium.js';
import { serveDemoSources, settled } from './support/demo.js';

let browser;
let server;
let opened;

beforeAll(async () => {
  [browser, server] = await Promise.all([launchChromium(), serveDemoSources()]);
  opened = await openPage(browser);
  await opened.page.goto(`${server.url}/`);
  await settled(opened.page);
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

test('the page served from its sources computes everything without an error', async () => {
  await expect(opened.page.locator('.verdict[data-good="true"]').count()).resolves.toBe(3);
  expect(errorsIn(opened.said)).toEqual([]);
});

test('labels that do not fit the matrix: both numbers, no picture (F3)', async () => {
  const found = await opened.page.evaluate(async () => {
    const { HeatMap } = await import('/src/heatmap/heat-map.ts');
    const map = new HeatMap({ title: () => 'misfit' });
    document.body.append(map.element);
    const axis = (labels, role) => ({ labels, role });
    const scale = { kind: 'share', max: 1 };
    const read = () => ({
      drawn: !map.element.querySelector('.map-stage').hidden,
      text: map.element.querySelector('.map-message').textContent,
    });
    map.show({
      values: new Float32Array(6),
      rows: axis(['a', 'b'], 'query'),
      columns: axis(['x', 'y'], 'key'),
      scale,
    });
    const misfit = read();
    map.show({
      values: new Float32Array(0),
      rows: axis([], 'query'),
      columns: axis([], 'key'),
      scale,
    });
    const empty = read();
    map.show({
      values: new Float32Array(4),
      rows: axis(['a', 'b'], 'query'),
      columns: axis(['x', 'y'], 'key'),
      scale,
    });
    const fits = read();
    map.element.remove();
    return { misfit, empty, fits };
  });
  expect(found.misfit.drawn).toBe(false);
  expect(found.misfit.text).toMatch(/\b2\b.*\b3\b/u);
  expect(found.empty.drawn).toBe(false);
  expect(found.empty.text).not.toMatch(/NaN|Infinity/u);
  expect(found.fits.drawn).toBe(true);
});

test.each([1, 2, 7, 13, 16, 24])(
  '%i heads: exactly these entries, and a choice that is gone falls back (F5)',
  async (heads) => {
    const found = await opened.page.evaluate(async (count) => {
      const { HeadPicker } = await import('/src/parts/head-picker.ts');
      const picker = new HeadPicker(count);
      const names = () =>
        [...picker.element.querySelectorAll('label')].map((label) => label.textContent);
      const checked = () => picker.element.querySelector('input:checked').value;
      const entries = names();
      picker.choice.set(count - 1);
      const last = checked();
      picker.setHeads(Math.max(1, count - 1));
      return { entries, last, after: checked(), left: names().length };
    }, heads);
    expect(found.entries).toEqual([
      ...Array.from({ length: heads }, (_, i) => `Head ${i + 1}`),
      'Average',
    ]);
    expect(found.last).toBe(String(heads - 1));
    expect(found.after).toBe('0');
    expect(found.left).toBe(Math.max(1, heads - 1) + 1);
  },
);

test.each(['light', 'dark'])(
  '0.02 is pale, 1 is strong, and hidden is not 0: %s (F6)',
  async (scheme) => {
    const found = await opened.page.evaluate(async (theme) => {
      const { colourOf } = await import('/src/heatmap/palette.ts');
      const { layOut, columnX, rowY } = await import('/src/heatmap/geometry.ts');
      const { paintStill } = await import('/src/heatmap/painter.ts');
      const scale = { kind: 'share', max: 1 };
      const data = {
        values: Float32Array.of(0, 0, 0.02, 1),
        hidden: Uint8Array.of(0, 1, 0, 0),
        rows: { labels: ['q'], role: 'query' },
        columns: { labels: ['a', 'b', 'c', 'd'], role: 'key' },
        scale,
      };
      const layout = layOut({
        rows: 1,
        columns: 4,
        available: 200,
        rowLabelWidth: 10,
        columnLabelWidth: 10,
        square: true,
      });
      const canvas = Object.assign(document.createElement('canvas'), {
        width: layout.width,
        height: layout.height,
      });
      const context = canvas.getContext('2d');
      paintStill(context, data, layout, theme);
      // All pixels of a cell's middle third, without the number that is written there: its colours, counted.
      const pixels = (column) => {
        const image = context.getImageData(
          columnX(layout, column) + 2,
          rowY(layout, 0) + 2,
          layout.cellWidth - 5,
          6,
        ).data;
        return new Set(
          Array.from({ length: image.length / 4 }, (_, i) =>
            image.slice(4 * i, 4 * i + 4).join(' '),
          ),
        ).size;
      };
      return {
        zero: colourOf(0, scale, theme),
        faint: colourOf(0.02, scale, theme),
        full: colourOf(1, scale, theme),
        plain: pixels(0),
        hatched: pixels(1),
      };
    }, scheme);
    const far = (a, b) => Math.hypot(...a.map((channel, i) => channel - b[i]));
    expect(far(found.zero, found.faint)).toBeLessThan(0.1 * far(found.zero, found.full));
    expect(far(found.zero, found.full)).toBeGreaterThan(200);
    expect(found.plain).toBe(1);
    expect(found.hatched).toBeGreaterThan(1);
  },
);

test('of several runs only the last counts; a cancelled one says so, and the next is right (F2)', async () => {
  const found = await opened.page.evaluate(async () => {
    const { Latest } = await import('/src/latest.ts');
    const latest = new Latest();
    const aborted = [];
    let finishFirst;
    // A run that ends late and does not even look at its signal.
    const first = latest.run((signal) => {
      signal.addEventListener('abort', () => aborted.push('first'));
      return new Promise((resolve) => (finishFirst = () => resolve('first')));
    });
    const second = await latest.run(async () => 'second');
    finishFirst();
    const third = latest.run((signal) => {
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    });
    latest.cancel();
    const fourth = latest.run(async () => {
      throw new Error('no');
    });
    return {
      aborted,
      first: await first,
      second,
      third: (await third).kind,
      fourth: (await fourth).kind,
      fifth: await latest.run(async () => 'fifth'),
    };
  });
  expect(found).toEqual({
    aborted: ['first'],
    first: { kind: 'stale' },
    second: { kind: 'done', value: 'second' },
    third: 'cancelled',
    fourth: 'failed',
    fifth: { kind: 'done', value: 'fifth' },
  });
});
