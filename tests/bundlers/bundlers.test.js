// Tests, bundlers: the packed package in fresh projects, built by each bundler, run in Chromium with threads and without (C5, C6).

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { errorsIn, launchChromium } from '../browser/support/chromium.js';
import { serve } from '../browser/support/server.js';
import { build, pack, startVite } from './support/packed.js';
import { visit } from './support/visit.js';

let packed;
let browser;

beforeAll(async () => {
  [packed, browser] = await Promise.all([pack(), launchChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await packed?.remove();
});

/** Builds once; then both kinds of server show what the bundle does. */
const built = (name, ownPage) => async (project) => {
  const folder = await build(name, project, { ownPage });
  return (isolated) => serve({ '/': folder }, { isolated });
};

/** name → project → (isolated → { url, close }). */
const ways = {
  webpack: built('webpack'),
  esbuild: built('esbuild'),
  Rollup: built('rollup'),
  'Vite, built and previewed': async (project) => {
    await build('vite', project, { ownPage: true });
    return (isolated) => startVite('preview', project, isolated);
  },
  'Vite, developing': async (project) => (isolated) => startVite('dev', project, isolated),
};

describe.each(Object.entries(ways))('%s', (name, prepare) => {
  let serveIt;
  beforeAll(async () => {
    serveIt = await prepare(await packed.project(name.replaceAll(/\W/gu, '-')));
  });

  async function visitServed(isolated, runs) {
    const server = await serveIt(isolated);
    try {
      return await visit(browser, server.url, runs);
    } finally {
      await server.close();
    }
  }

  test('isolated: threads, in the worker and on the page, and the same bits with one', async () => {
    const { results, said } = await visitServed(true, [
      { threads: 2 },
      { threads: 1 },
      { threads: 2, offMainThread: false, variant: 'simd' },
      { threads: 1, offMainThread: false, variant: 'simd' },
    ]);
    expect(said).toEqual([]);
    const near = results.map(() => expect.closeTo(14, 4));
    expect(results.map(({ value }) => value)).toEqual(near);
    expect(results.map(({ onnx }) => onnx)).toEqual(near);
    expect(results.map(({ info }) => [info.threads, info.offMainThread])).toEqual([
      [2, true],
      [1, true],
      [2, false],
      [1, false],
    ]);
    expect(results[0].many).toEqual(results[1].many);
    expect(results[2].many).toEqual(results[3].many);
  });

  test('not isolated: one thread, the reason, and one warning with the cure', async () => {
    const { results, said } = await visitServed(false, [{ threads: 2 }, { threads: 2 }]);
    for (const { value, info } of results) {
      expect(value).toBeCloseTo(14, 4);
      expect(info).toMatchObject({ threads: 1, offMainThread: true });
      expect(info.threadsReason).toContain('Cross-Origin-Opener-Policy');
    }
    expect(errorsIn(said)).toEqual([]);
    expect(said).toEqual([
      { type: 'warning', text: expect.stringMatching(/Cross-Origin-Embedder-Policy/u) },
    ]);
  });
});
