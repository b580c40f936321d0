// Tests, browser: the engine elsewhere than in a page (C15): a worker, a worker's worker, a service worker; and what it leaves behind.

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { launchChromium, openPage } from './support/chromium.js';
import { gotoEnginePage, serveEnginePage } from './support/engine-page.js';

let browser;
const servers = {};
let opened = [];

beforeAll(async () => {
  browser = await launchChromium();
  servers.isolated = await serveEnginePage(true);
  servers.open = await serveEnginePage(false);
});
afterAll(async () => {
  await browser?.close();
  for (const server of Object.values(servers)) await server.close();
});
afterEach(async () => {
  for (const { close } of opened) await close();
  opened = [];
});

async function visit(server) {
  const visited = await openPage(browser);
  opened.push(visited);
  await gotoEnginePage(visited.page, servers[server]);
  return visited;
}

const inWorker = (page, script) =>
  page.evaluate(
    (url) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(url, { type: 'module' });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
        worker.postMessage({ threads: 2 });
      }),
    script,
  );

describe.each(['/worker.js', '/nested-worker.js'])('%s', (script) => {
  test('isolated: two threads', async () => {
    const { page, said } = await visit('isolated');
    const { value, info, error } = await inWorker(page, script);
    expect(error).toBeUndefined();
    expect(value).toBeCloseTo(14, 4);
    expect(info).toMatchObject({ threads: 2, offMainThread: false });
    expect(said).toEqual([]);
  });

  test('not isolated: one thread and the reason', async () => {
    const { page } = await visit('open');
    const { value, info, error } = await inWorker(page, script);
    expect(error).toBeUndefined();
    expect(value).toBeCloseTo(14, 4);
    expect(info.threads).toBe(1);
    expect(info.threadsReason).toContain('Cross-Origin-Embedder-Policy');
  });
});

test.each(['isolated', 'open'])(
  'a module service worker (%s): one thread and the reason',
  async (server) => {
    const { page } = await visit(server);
    const { value, info, error } = await page.evaluate(async () => {
      await navigator.serviceWorker.register('/service-worker.js', { type: 'module' });
      const { active } = await navigator.serviceWorker.ready;
      const { port1, port2 } = new MessageChannel();
      return new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
        active.postMessage({ threads: 2 }, [port2]);
      });
    });
    expect(error).toBeUndefined();
    expect(value).toBeCloseTo(14, 4);
    expect(info.threads).toBe(1);
    expect(info.threadsReason).toMatch(/worker|isolated/u);
  },
);

test('a disposed engine leaves no worker behind', async () => {
  const { page } = await visit('isolated');
  await page.evaluate(async () => {
    const { createEngine } = globalThis.headwise;
    globalThis.engines = [
      await createEngine({ threads: 2 }),
      await createEngine({ threads: 3, offMainThread: false }),
    ];
  });
  const workers = page.workers();
  expect(workers.length).toBeGreaterThanOrEqual(3); // the engine's, and two threads of the page's
  const closed = Promise.all(workers.map((worker) => worker.waitForEvent('close')));
  await page.evaluate(() => globalThis.engines.forEach((engine) => engine.dispose()));
  await closed;
  expect(page.workers()).toEqual([]);
});
