// Tests, browser: the page's lessons and the walk-through with a trained model, in Chromium, built for production.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { errorsIn, launchChromium, openPage } from './support/chromium.js';
import { buildDemo, figure, readByKeys, settled, valueOf } from './support/demo.js';
import { serve } from './support/server.js';

const LESSONS = ['translate', 'write', 'segment'];
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
let built;
let server;
let opened;

beforeAll(async () => {
  [browser, built] = await Promise.all([launchChromium(), buildDemo()]);
  server = await serve({ '/': built.folder });
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
  await built?.remove();
});

afterEach(async () => {
  await opened?.close();
  opened = undefined;
});

async function visit(options) {
  opened = await openPage(browser, options);
  const { page } = opened;
  await page.goto(`${server.url}/`);
  await settled(page);
  return opened;
}

/** Goes to a lesson and waits until its stored model has been measured. */
async function goTo(page, id) {
  await page.locator(`#${id}`).scrollIntoViewIfNeeded();
  await page.locator(`#${id} .lesson-measures`).filter({ hasText: /\d/u }).waitFor();
}

test('the walk-through translates by itself, and its heads add up to 1', async () => {
  const { page, said } = await visit();
  const target = page.getByRole('textbox', { name: 'Target sentence' });
  await expect(target.inputValue()).resolves.toBe('De nada');
  await expect(target.isEditable()).resolves.toBe(false);
  const rows = await readByKeys(figure(page, 'steps', 'Attention weights'), 5, 5);
  for (const row of rows.slice(0, 4)) {
    expect(row[0]).toMatch(/key you/u);
    expect(row[4]).toMatch(/hidden by the mask$/u);
    const shares = row.slice(0, 4).map(valueOf);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 2);
  }
  await page.getByRole('textbox', { name: 'Source sentence' }).fill('She wants a red hat');
  await page.waitForFunction(() =>
    [...document.querySelectorAll('textarea')].some(
      ({ value }) => value === 'Ella quiere un sombrero rojo',
    ),
  );
  expect(errorsIn(said)).toEqual([]);
});

test.each([
  ['light', 'en-US', 1280],
  ['dark', 'zh-CN', 360],
])(
  'stored models show the end at once, axe finds nothing serious, nothing scrolls sideways: %s, %s, %i',
  async (colorScheme, locale, width) => {
    const { page, said } = await visit({ colorScheme, locale, viewport: { width, height: 800 } });
    for (const id of LESSONS) await goTo(page, id);
    await page.locator('#translate .translation').filter({ hasText: 'De nada' }).waitFor();
    await page.locator('#segment .verdict').last().filter({ hasText: /144/u }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(
      (ids) => globalThis.axe.run({ include: ids.map((id) => [`#${id}`]) }),
      LESSONS,
    );
    const serious = violations.filter(({ impact }) => /serious|critical/u.test(impact));
    expect(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html}`)).toEqual([]);
    expect(errorsIn(said)).toEqual([]);
  },
);

test('training starts from nothing, pauses, goes on, stops, and its maps can be gone through', async () => {
  const { page, said } = await visit();
  await goTo(page, 'translate');
  const lesson = page.locator('#translate');
  const press = (name) => lesson.getByRole('button', { name, exact: true }).click();
  const step = async () =>
    Number(/Step (\d+)/u.exec(await lesson.locator('.lesson-status').textContent())?.[1] ?? 0);
  const beyond = (count) =>
    page.waitForFunction(
      (least) =>
        Number(
          /Step (\d+)/u.exec(document.querySelector('#translate .lesson-status').textContent)?.[1],
        ) >= least,
      count,
    );
  await press('Train it here, from nothing');
  await beyond(5);
  await press('Pause');
  await lesson.getByText('Paused').waitFor();
  const slider = lesson.locator('.step-slider input');
  const paused = Number(await slider.getAttribute('max'));
  await page.waitForTimeout(700);
  // The step that was under way when the button was pressed may still count.
  const settledAt = Number(await slider.getAttribute('max'));
  expect(settledAt - paused).toBeLessThanOrEqual(1);
  await page.waitForTimeout(700);
  expect(Number(await slider.getAttribute('max'))).toBe(settledAt);
  await press('Go on');
  await beyond(settledAt + 3);
  expect(await step()).toBeGreaterThan(settledAt);
  await press('Stop');
  await lesson.getByText('Stopped.').waitFor();

  const map = figure(page, 'translate', 'Layer 1, head 1');
  await slider.focus();
  await slider.press('End');
  const last = (await readByKeys(map, 3, 4)).flat();
  await slider.focus();
  await slider.press('Home');
  const first = (await readByKeys(map, 3, 4)).flat();
  expect(first).toHaveLength(12);
  expect(first).not.toEqual(last);
  await press('Show the stored model');
  await lesson.getByText('trained before').waitFor();
  await lesson.locator('.translation').filter({ hasText: 'De nada' }).waitFor();
  expect(errorsIn(said)).toEqual([]);
});

test('letters are written one by one, and a letter shows what it looked at', async () => {
  const { page, said } = await visit();
  await goTo(page, 'write');
  const text = page.locator('#write .written');
  await page.waitForFunction(() => document.querySelectorAll('#write .written span').length > 20);
  await text.focus();
  await text.press('End');
  await page.waitForFunction(() =>
    [...document.querySelectorAll('#write .written > *')].some(({ style }) => style.background),
  );
  expect(errorsIn(said)).toEqual([]);
});
