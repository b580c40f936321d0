// Tests, browser: starts the system's Chromium, and collects what a page says on its console.

import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

// What Chromium itself says wherever a page asks for a GPU and there is none, as backend 'auto' does.
const noGpuRemark = 'No available adapters.';

/** The path of Chromium: HEADWISE_CHROMIUM, or the first that PATH has. Throws where there is none. */
export function chromiumPath() {
  if (process.env.HEADWISE_CHROMIUM) return process.env.HEADWISE_CHROMIUM;
  for (const name of NAMES) {
    try {
      return execFileSync('sh', ['-c', 'command -v "$1"', 'sh', name], { encoding: 'utf8' }).trim();
    } catch {
      // The next name, then.
    }
  }
  throw new Error(
    `no Chromium: none of ${NAMES.join(', ')} is on PATH; name one with HEADWISE_CHROMIUM`,
  );
}

/** Switches for WebGPU on Chromium's GPU in software. See tests/webgpu/support/setup.js for the last. */
export const swiftShader = [
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-dawn-features=disable_workgroup_init',
];

/** A headless Chromium with a profile of its own; `args` are further switches. Close it with `close()`. */
export function launchChromium({ args = [] } = {}) {
  return chromium.launch({
    executablePath: chromiumPath(),
    args: [
      '--no-sandbox', // containers and root have none
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  });
}

/**
 * A page in a context of its own (`options` as in Playwright's newContext). Resolves to { page, said, close }: `said` collects
 * { type, text } of console messages, uncaught errors (type 'pageerror') and failed requests (type 'requestfailed').
 */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    locale: 'en-US',
    ...options,
  });
  const page = await context.newPage();
  const said = [];
  page.on('console', (message) => {
    if (message.text() !== noGpuRemark) said.push({ type: message.type(), text: message.text() });
  });
  page.on('pageerror', (error) => said.push({ type: 'pageerror', text: String(error) }));
  page.on('requestfailed', (request) =>
    said.push({ type: 'requestfailed', text: `${request.url()} ${request.failure()?.errorText}` }),
  );
  return { page, said, close: () => context.close() };
}

/** Those messages that a reader's console would show in red. */
export function errorsIn(said) {
  return said.filter(
    ({ type }) => type === 'error' || type === 'pageerror' || type === 'requestfailed',
  );
}
