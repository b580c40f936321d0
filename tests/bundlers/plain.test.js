// Tests, bundlers: no bundler at all: a page that imports the packed package's modules as they lie, also from another origin, and
// servers that do not play along (C6).

import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { errorsIn, launchChromium } from '../browser/support/chromium.js';
import { serve } from '../browser/support/server.js';
import { pack } from './support/packed.js';
import { visit } from './support/visit.js';

let packed;
let browser;
let servers = [];

beforeAll(async () => {
  [packed, browser] = await Promise.all([pack(), launchChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await packed?.remove();
});
afterEach(async () => {
  for (const server of servers) await server.close();
  servers = [];
});

async function started(...args) {
  const server = await serve(...args);
  servers.push(server);
  return server;
}

/** A page that finds the package at `base`. */
const page = (base = '') => `<!doctype html>
  <link rel="icon" href="data:," />
  <script type="importmap">{ "imports": {
    "headwise": "${base}/node_modules/headwise/dist/index.js",
    "headwise/onnx": "${base}/node_modules/headwise/dist/onnx/index.js" } }</script>
  <script type="module" src="/main.js"></script>`;

const both = [{ threads: 2 }, { threads: 1 }, { threads: 2, offMainThread: false }];

/** Isolated: as many threads as were asked for, the right number, the same bits, nothing said. */
function expectThreads({ results, said }) {
  expect(said).toEqual([]);
  const near = results.map(() => expect.closeTo(14, 4));
  expect(results.map(({ value }) => value)).toEqual(near);
  expect(results.map(({ onnx }) => onnx)).toEqual(near);
  expect(results.map(({ info }) => [info.threads, info.offMainThread])).toEqual(
    both.map(({ threads, offMainThread = true }) => [threads, offMainThread]),
  );
  for (const { many } of results) expect(many).toEqual(results[0].many);
}

/** Not isolated: one thread and the reason, the right number, one warning. */
function expectOneThread({ results, said }) {
  for (const { value, info } of results) {
    expect(value).toBeCloseTo(14, 4);
    expect(info.threads).toBe(1);
  }
  expect(results[0].info.threadsReason).toContain('Cross-Origin-Embedder-Policy');
  expect(errorsIn(said)).toEqual([]);
  expect(said.map(({ type }) => type)).toEqual(['warning']);
}

describe('modules as they lie', () => {
  let project;
  beforeAll(async () => {
    project = await packed.project('plain');
  });

  test.each([
    [true, expectThreads],
    [false, expectOneThread],
  ])('from the same origin, isolated: %s', async (isolated, expectIt) => {
    const { url } = await started({ '/': project }, { isolated, pages: { '/': page() } });
    expectIt(await visit(browser, url, both));
  });

  test.each([
    [true, expectThreads],
    [false, expectOneThread],
  ])('from another origin that allows it (CORS), isolated: %s', async (isolated, expectIt) => {
    const headers = { 'Access-Control-Allow-Origin': '*' };
    const other = await started({ '/': project }, { isolated: false, headers });
    const pages = { '/': page(other.url) };
    const { url, requests } = await started({ '/': project }, { isolated, pages });
    expectIt(await visit(browser, url, both));
    expect(requests.filter((path) => path.includes('headwise'))).toEqual([]);
  });

  test('binaries served as application/octet-stream', async () => {
    const { url } = await started(
      { '/': project },
      { pages: { '/': page() }, types: { '.wasm': 'application/octet-stream' } },
    );
    expectThreads(await visit(browser, url, both));
  });
});

describe('files that are not there', () => {
  let project;
  let folder;
  beforeAll(async () => {
    project = await packed.project('incomplete');
    folder = join(project, 'node_modules/headwise/dist/wasm');
    for (const variant of ['simd', 'relaxed'])
      await rename(
        join(folder, `headwise-${variant}.wasm`),
        join(project, `headwise-${variant}.wasm`),
      );
  });

  test.each([true, false])(
    'no binary, off the main thread: %s: its URL in the message',
    async (offMainThread) => {
      const { url } = await started({ '/': project }, { pages: { '/': page() } });
      const runs = [{ offMainThread, variant: 'simd' }];
      const { results } = await visit(browser, url, runs, { within: 5000 });
      expect(results[0].error).toContain(
        `${url}/node_modules/headwise/dist/wasm/headwise-simd.wasm`,
      );
    },
  );

  test('the binary lies elsewhere, and the page says where', async () => {
    const { url } = await started({ '/': project }, { pages: { '/': page() } });
    expectThreads(
      await visit(
        browser,
        url,
        both.map((options) => ({ ...options, wasmUrl: `${url}/` })),
      ),
    );
  });

  test('no script for the workers: the page computes alone and says so', async () => {
    await rm(join(folder, 'worker.js'));
    const { url } = await started({ '/': project }, { pages: { '/': page() } });
    const { results, said } = await visit(browser, url, [{ threads: 2, wasmUrl: `${url}/` }]);
    expect(results[0].value).toBeCloseTo(14, 4);
    expect(results[0].info).toMatchObject({ threads: 1, offMainThread: false });
    expect(results[0].info.threadsReason).toMatch(/worker/u);
    expect(said.filter(({ type }) => type === 'warning')).toHaveLength(2);
  });
});
