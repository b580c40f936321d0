// Tests, browser: a page that holds the built package and the tests' helpers as `globalThis.headwise`.

import { fileURLToPath } from 'node:url';
import { serve } from './server.js';

const folder = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** Serves the page, with the isolation headers or without. As `serve`. */
export const serveEnginePage = (isolated) =>
  serve(
    {
      '/': folder('tests/browser/pages/'),
      '/dist/': folder('dist/'),
      '/conformance/': folder('tests/js/conformance/'),
    },
    { isolated },
  );

/** Goes to the page and waits for its `headwise`. */
export async function gotoEnginePage(page, server) {
  await page.goto(`${server.url}/`);
  await page.waitForFunction(() => 'headwise' in globalThis);
}
