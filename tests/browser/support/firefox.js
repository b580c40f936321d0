// Tests, browser: starts the system's Firefox over WebDriver BiDi, and collects what a page says on its console.

import { execFileSync } from 'node:child_process';
import puppeteer from 'puppeteer-core';

/** The path of Firefox: HEADWISE_FIREFOX, or the first that PATH has; undefined where there is none. */
export function firefoxPath() {
  if (process.env.HEADWISE_FIREFOX) return process.env.HEADWISE_FIREFOX;
  for (const name of ['firefox-esr', 'firefox']) {
    try {
      return execFileSync('sh', ['-c', 'command -v "$1"', 'sh', name], { encoding: 'utf8' }).trim();
    } catch {
      // The next name, then.
    }
  }
  return undefined;
}

/** A headless Firefox with a profile of its own. Close it with `close()`. */
export function launchFirefox() {
  return puppeteer.launch({ browser: 'firefox', executablePath: firefoxPath(), headless: true });
}

/** A page; as Chromium's openPage: { page, said, close }. */
export async function openFirefoxPage(browser) {
  const page = await browser.newPage();
  const said = [];
  page.on('console', (message) => {
    const type = message.type();
    said.push({ type: type === 'warn' ? 'warning' : type, text: message.text() });
  });
  page.on('pageerror', (error) => said.push({ type: 'pageerror', text: String(error) }));
  return { page, said, close: () => page.close() };
}
