// Tests, bundlers: what the page computes and says in a browser.

import { openPage } from '../../browser/support/chromium.js';

/**
 * Opens the page at a server, runs its `check` with each of the options, and closes it. Resolves to { results, said }: a result
 * is what `check` gives, or { error } with the message of what it throws, also when it has not ended `within` ms.
 */
export async function visit(browser, url, runs, { within = 60_000 } = {}) {
  const { page, said, close } = await openPage(browser);
  try {
    await page.goto(`${url}/`);
    await page.waitForFunction(() => 'check' in globalThis);
    const results = [];
    for (const options of runs)
      results.push(
        await page.evaluate(
          ({ options, within }) =>
            Promise.race([
              globalThis.check(options).catch((error) => ({ error: error.message })),
              new Promise((resolve) =>
                setTimeout(resolve, within, { error: `no answer after ${within} ms` }),
              ),
            ]),
          { options, within },
        ),
      );
    // Vite's client, while developing, greets with messages of the lowest level.
    return { results, said: said.filter(({ type }) => type !== 'debug') };
  } finally {
    await close();
  }
}
