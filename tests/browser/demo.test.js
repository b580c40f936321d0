// Tests, browser: the demo page as a reader meets it, in Chromium, built for production. Faults F1 to F8 of viewers and demos.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createEngine } from 'headwise';
import { tokenize } from '../../web/examples/lib/tokens.mjs';
import { walkThrough } from '../../web/examples/lib/transformer.mjs';
import { errorsIn, launchChromium, openPage } from './support/chromium.js';
import {
  buildDemo,
  figure,
  readByKeys,
  settled,
  takeDrawnWeights,
  valueOf,
} from './support/demo.js';
import { serve } from './support/server.js';
import { threeDigits } from './support/tolerances.js';

/** The seed that the page starts with. */
const SEED = 3;

let browser;
let built;
let isolated;
let open;
let pages = [];

beforeAll(async () => {
  [browser, built] = await Promise.all([launchChromium(), buildDemo()]);
  isolated = await serve({ '/': built.folder });
  open = await serve({ '/': built.folder }, { isolated: false });
});

afterAll(async () => {
  await browser?.close();
  await isolated?.close();
  await open?.close();
  await built?.remove();
});

afterEach(async () => {
  for (const { close } of pages) await close();
  pages = [];
});

/** The walk-through with drawn weights, in the article's sizes, which a test can compute too; lessons.test.js has the other. */
async function visit({ server = isolated, ...options } = {}) {
  const opened = await openPage(browser, options);
  pages.push(opened);
  await opened.page.goto(`${server.url}/`);
  await settled(opened.page);
  await takeDrawnWeights(opened.page);
  return opened;
}

const fact = (page, name) =>
  page.locator('.facts dt', { hasText: name }).locator('xpath=following-sibling::dd[1]');

describe('start', () => {
  test('an isolated page computes everything without a word on the console', async () => {
    const { page, said } = await visit();
    expect(errorsIn(said)).toEqual([]);
    expect(said.filter(({ type }) => type === 'warning')).toEqual([]);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    const cores = await page.evaluate(() => navigator.hardwareConcurrency);
    if (cores > 1) expect(Number(await fact(page, 'Threads').textContent())).toBeGreaterThan(1);
    await expect(page.locator('.verdict[data-good="true"]').count()).resolves.toBe(3);
  });

  test('without isolation it computes with one thread and says why and what helps', async () => {
    const { page, said } = await visit({ server: open });
    expect(errorsIn(said)).toEqual([]);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
    expect(await fact(page, 'Threads').textContent()).toMatch(/^1.*isolat/u);
    const warnings = said.filter(({ type }) => type === 'warning').map(({ text }) => text);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('Cross-Origin-Opener-Policy');
    await expect(page.locator('.verdict[data-good="true"]').count()).resolves.toBe(3);
  });
});

describe('maps', () => {
  let walk;
  beforeAll(async () => {
    const engine = await createEngine();
    walk = await walkThrough(engine, { seed: SEED });
    engine.dispose();
  });

  test('keys read every cell of a map whose rows and columns are other sentences (F3)', async () => {
    const { page } = await visit();
    const { weights, masked, queries, keys } = walk.cross;
    const texts = await readByKeys(figure(page, 'attentions', 'query', 2), 3, 4);
    texts.forEach((line, i) =>
      line.forEach((text, j) => {
        expect(text).toContain(`query ${queries.tokens[i]}, key ${keys.tokens[j]}, `);
        if (masked.data[i * 4 + j] === -Infinity) expect(text).toMatch(/hidden by the mask$/u);
        else expect(Math.abs(valueOf(text) - weights.data[i * 4 + j])).toBeLessThan(threeDigits);
      }),
    );
  });

  test('each head shows its own weights, and the average is their mean (F5)', async () => {
    const { page } = await visit();
    const map = figure(page, 'steps', 'Attention weights');
    const picker = page.locator('#steps .step').nth(7).locator('.head-picker'); // step 8, softmax
    const size = 4 * 4;
    const head = (h) => walk.encoder.weights.data.subarray(h * size, (h + 1) * size);
    const expected = [head(0), head(1), head(0).map((value, i) => (value + head(1)[i]) / 2)];
    await expect(picker.locator('label').allTextContents()).resolves.toEqual([
      'Head 1',
      'Head 2',
      'Average',
    ]);
    for (const [choice, values] of expected.entries()) {
      await picker.locator('label').nth(choice).click();
      const texts = (await readByKeys(map, 4, 4)).flat();
      texts.forEach((text, i) => {
        const value = valueOf(text);
        if (i % 4 === 3) expect(value).toBeNaN();
        else expect(Math.abs(value - values[i])).toBeLessThan(threeDigits);
      });
    }
  });

  test('the pointer reads the same value as the keys, scrolls nothing, and lights the token elsewhere', async () => {
    const { page } = await visit();
    const map = figure(page, 'attentions', 'query', 2);
    await map.scrollIntoViewIfNeeded();
    const [, line] = await readByKeys(map, 2, 4);
    const box = await map.locator('canvas').boundingBox();
    const before = await page.evaluate(() => scrollY);
    const read = new Set();
    // Down the third quarter of the picture, through every row.
    for (let y = 0.3; y < 1; y += 0.05) {
      await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * y);
      read.add(await map.locator('.map-readout').textContent());
    }
    expect([...read]).toEqual(expect.arrayContaining([line[2]]));
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.6);
    await expect(page.locator('.tokens li.lit').count()).resolves.toBe(2);
    expect(await page.evaluate(() => scrollY)).toBe(before);
  });

  test('a table holds the same numbers', async () => {
    const { page } = await visit();
    const map = figure(page, 'steps', 'Attention weights');
    await map.getByRole('button').click();
    const cells = await map.locator('td:not(:empty)').allTextContents();
    expect(cells).toHaveLength(16);
    cells.forEach((text, i) => {
      if (i % 4 === 3) expect(text).toBe('hidden by the mask');
      else expect(Math.abs(valueOf(text) - walk.encoder.weights.data[i])).toBeLessThan(threeDigits);
    });
  });

  test('the legend says 0 to 1 until the reader asks for a scale of the head’s own (F6)', async () => {
    const { page } = await visit();
    const legend = figure(page, 'attentions', 'query', 0).locator('.legend');
    await expect(legend.locator('.legend-ends').textContent()).resolves.toBe('01');
    await page.locator('#attentions .check input').check();
    const largest = Math.max(...walk.encoder.weights.data.subarray(0, 16));
    expect(Math.abs(Number(await legend.getAttribute('data-max')) - largest)).toBeLessThan(1e-5);
    await expect(legend.locator('.legend-ends').textContent()).resolves.not.toBe('01');
  });
});

describe('the reader’s own sentences', () => {
  const type = async (page, label, text) => {
    await page.getByRole('textbox', { name: label }).fill(text);
  };
  const sourceTokens = (page) => page.locator('.token-row').first().locator('.token');

  test('emoji, combining letters, right-to-left, double spaces and [SEP] are as many labels as tokens (F3)', async () => {
    const { page, said } = await visit();
    const text = 'שלום  עולם   👩‍👩‍👧 cafe\u0301 [SEP] 你好世界';
    const { tokens } = tokenize(text);
    expect(tokens).toEqual(expect.arrayContaining(['שלום', '👩‍👩‍👧', 'caf\u00e9', '[SEP]']));
    await type(page, 'Source sentence', text);
    await page.waitForFunction(
      (count) => document.querySelectorAll('.token-row:first-child .token').length === count,
      tokens.length + 1,
    );
    await expect(sourceTokens(page).allTextContents()).resolves.toEqual([...tokens, '<pad>']);
    const label = await figure(page, 'attentions', 'query', 2)
      .locator('.map-stage')
      .getAttribute('aria-label');
    expect(label).toContain(`3 rows, ${tokens.length + 1} columns`);
    expect(errorsIn(said)).toEqual([]);
  });

  test('20 to 20,000 words: few elements, and the cut is told (F1)', async () => {
    const { page, said } = await visit();
    for (const count of [20, 200, 2000, 20000]) {
      const text = Array.from({ length: count }, (_, i) => `word${i}`).join(' ');
      await type(page, 'Write a sentence', text);
      await type(page, 'Source sentence', text);
      const kept = Math.min(count, 64);
      await page.waitForFunction(
        (n) => document.querySelectorAll('.token-row:first-child .token').length === n + 1,
        kept,
      );
      await page.waitForFunction(
        (n) => document.querySelector('.hero-maps .map-stage').ariaLabel.includes(`${n} rows`),
        kept,
      );
      if (count <= 64) {
        await expect(page.locator('.kept:visible').count()).resolves.toBe(0);
        continue;
      }
      const told = new RegExp(`${count.toLocaleString('en')} tokens.*first 64`, 'u');
      await page.locator('.hero .kept', { hasText: told }).waitFor();
      await page.locator('.controls .kept', { hasText: told }).waitFor();
    }
    for (const button of await page.locator('.table-toggle').all())
      await button.evaluate((element) => element.click());
    expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(5000);
    expect(errorsIn(said)).toEqual([]);
  });

  test('no words: friendly text, and no NaN or Infinity', async () => {
    const { page, said } = await visit();
    await type(page, 'Write a sentence', '   ');
    await type(page, 'Source sentence', '');
    await page.getByText('Write a few words above').waitFor();
    await page.getByText('Write at least one word into both').waitFor();
    expect(await page.locator('main').innerText()).not.toMatch(/\bNaN\b(?!\.)|Infinity|undefined/u);
    await type(page, 'Source sentence', 'again');
    await page.waitForFunction(
      () => document.querySelectorAll('.token-row:first-child .token').length === 2,
    );
    expect(errorsIn(said)).toEqual([]);
  });

  test('typing beside a heavy run shows the last sentence only, and the run can be cancelled (F2)', async () => {
    const { page, said } = await visit();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('.stress-report', { hasText: /of 24/u }).waitFor();
    // Every sentence that appears is noted; an early one after a later one would be stale.
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() =>
        window.seen.push(document.querySelector('.tokens .token')?.textContent),
      ).observe(document.querySelector('.tokens'), { childList: true });
    });
    const field = page.getByRole('textbox', { name: 'Source sentence' });
    for (let i = 1; i <= 8; i++) {
      await field.fill(`number${i} sentence`);
      await page.waitForTimeout(i % 2 === 0 ? 150 : 10);
    }
    await page.waitForFunction(
      () => document.querySelector('.tokens .token').textContent === 'number8',
    );
    await page.waitForTimeout(500);
    const seen = await page.evaluate(() => window.seen);
    expect(seen.at(-1)).toBe('number8');
    expect([...seen].sort()).toEqual(seen);
    const cancel = page.locator('.stress').getByRole('button', { name: 'Cancel' });
    if (await cancel.isVisible()) await cancel.click();
    await page.locator('.stress-report', { hasText: /Stopped after|Done in/u }).waitFor();
    await page.getByRole('button', { name: 'Back to the article' }).click();
    await page.waitForFunction(
      () => document.querySelector('.tokens .token').textContent === 'You',
    );
    expect(errorsIn(said)).toEqual([]);
  });
});

describe('languages, colours, sizes', () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

  test('one switch turns every text Chinese and back, and keeps what the reader wrote', async () => {
    const { page } = await visit();
    await page.getByRole('textbox', { name: 'Source sentence' }).fill('keep this');
    await page.getByRole('button', { name: '切换到中文' }).click();
    expect(await page.locator('html').getAttribute('lang')).toBe('zh-Hans');
    await expect(page.locator('h1').textContent()).resolves.toBe('注意力头看见了什么');
    expect(await page.getByRole('textbox', { name: '源句' }).inputValue()).toBe('keep this');
    // Words of English prose that are neither code nor names.
    const text = await page.locator('main').innerText();
    expect(text).not.toMatch(/\b(the|weights of|sentence|hidden by)\b/u);
    await page.getByRole('button', { name: 'Switch to English' }).click();
    await expect(page.locator('h1').textContent()).resolves.toBe('What attention heads see');
  });

  test.each([
    ['light', 'en-US'],
    ['dark', 'zh-CN'],
  ])('axe finds nothing serious: %s, %s (F8)', async (colorScheme, locale) => {
    const { page } = await visit({ colorScheme, locale });
    expect(await page.locator('html').getAttribute('data-theme')).toBe(colorScheme);
    // One table with pages, one without.
    await figure(page, 'steps', 'Q·Kᵀ').locator('.table-toggle').click();
    await page.locator('#keras .table-toggle').first().click();
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const serious = violations.filter(
      ({ impact }) => impact === 'serious' || impact === 'critical',
    );
    expect(
      serious.map(
        ({ id, nodes }) =>
          `${id}: ${nodes
            .map(({ html }) => html)
            .slice(0, 3)
            .join(' ')}`,
      ),
    ).toEqual([]);
  });

  test.each(['en-US', 'zh-CN'])(
    '360 pixels wide, nothing makes the page scroll sideways: %s',
    async (locale) => {
      const { page } = await visit({ viewport: { width: 360, height: 740 }, locale });
      for (const toggle of await page.locator('.table-toggle').all())
        await toggle.evaluate((element) => element.click());
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    },
  );

  test('the switch of colours is kept, and less motion is honoured', async () => {
    const { page } = await visit({ colorScheme: 'light', reducedMotion: 'reduce' });
    await page.getByRole('button', { name: 'Switch to dark colours' }).click();
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
    await page.reload();
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
    const motion = await page.evaluate(() => {
      const pulse = document.querySelector('.pulse');
      return [
        getComputedStyle(pulse).animationName,
        getComputedStyle(document.documentElement).scrollBehavior,
      ];
    });
    expect(motion).toEqual(['none', 'auto']);
  });
});
