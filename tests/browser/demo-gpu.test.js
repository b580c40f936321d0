// Tests, browser: the demo's engine panel where there is no GPU: the side of the last call with its reason, the switch, and the
// comparison of both sides, which says why it cannot be.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { errorsIn, launchChromium, openPage } from './support/chromium.js';
import { buildDemo, settled } from './support/demo.js';
import { serve } from './support/server.js';

let browser;
let built;
let server;
beforeAll(async () => {
  [browser, built] = await Promise.all([launchChromium(), buildDemo()]);
  server = await serve({ '/': built.folder });
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
  await built?.remove();
});

test('the panel names the side and the reason, and the reader may choose', async () => {
  const { page, said, close } = await openPage(browser);
  await page.goto(`${server.url}/`);
  await settled(page);
  const facts = page.locator('.facts');
  await page.waitForFunction(() =>
    document.querySelector('.facts')?.textContent.includes('Last call'),
  );
  expect(await facts.textContent()).toMatch(/GPUnone.*WebGPU/u);
  expect(await facts.textContent()).toMatch(/Last call ran onwasm/u);
  const select = page.locator('.backend-switch select');
  await select.selectOption('webgpu');
  await page.waitForFunction(() =>
    /Not possible/.test(document.querySelector('.backend-switch .reason').textContent),
  );
  expect(await select.inputValue()).toBe('auto');
  await select.selectOption('wasm');
  await page.waitForFunction(() =>
    /not asked for/.test(document.querySelector('.facts').textContent),
  );
  await page.locator('.crossover button').first().click();
  await page.waitForFunction(() =>
    /No comparison here/.test(document.querySelector('.crossover .stress-report').textContent),
  );
  expect(errorsIn(said)).toEqual([]);
  await close();
});
