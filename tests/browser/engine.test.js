// Tests, browser: the engine in pages, in Chromium and Firefox: in a worker by default, on the page on demand, isolated or not; long
// calls leave the page alive and can be ended.

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { errorsIn, launchChromium, openPage } from './support/chromium.js';
import { gotoEnginePage, serveEnginePage } from './support/engine-page.js';
import { firefoxPath, launchFirefox, openFirefoxPage } from './support/firefox.js';

const browsers = [['Chromium', launchChromium, openPage]];
if (firefoxPath() !== undefined) browsers.push(['Firefox', launchFirefox, openFirefoxPage]);
else
  process.stderr.write('Firefox not tested: it is not on PATH (name one with HEADWISE_FIREFOX)\n');

let isolated;
let open;
beforeAll(async () => {
  isolated = await serveEnginePage(true);
  open = await serveEnginePage(false);
});
afterAll(async () => {
  await isolated?.close();
  await open?.close();
});

describe.each(browsers)('%s', (name, launch, newPage) => {
  let browser;
  let opened = [];

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const { close } of opened) await close();
    opened = [];
  });

  async function visit(server = isolated) {
    const visited = await newPage(browser);
    opened.push(visited);
    await gotoEnginePage(visited.page, server);
    return visited;
  }

  const compute = (page, options) =>
    page.evaluate((given) => globalThis.headwise.compute(given), options);

  test('isolated: in a worker, with threads, without a word', async () => {
    const { page, said } = await visit();
    const { value, info } = await compute(page, { threads: 2 });
    expect(value).toBeCloseTo(14, 4);
    expect(info).toMatchObject({ threads: 2, offMainThread: true, variant: 'relaxed' });
    const usual = await compute(page);
    const cores = await page.evaluate(() => navigator.hardwareConcurrency);
    expect(usual.info.threads).toBe(Math.min(cores, 16));
    expect(said).toEqual([]);
  });

  test('not isolated: one thread, the reason, and one warning that names both headers', async () => {
    const { page, said } = await visit(open);
    for (const options of [{ threads: 4 }, { threads: 2 }, { threads: 2, offMainThread: true }]) {
      const { value, info } = await compute(page, options);
      expect(value).toBeCloseTo(14, 4);
      expect(info).toMatchObject({ threads: 1, offMainThread: true });
      expect(info.threadsReason).toMatch(/not cross-origin isolated/u);
    }
    expect(errorsIn(said)).toEqual([]);
    const warnings = said.filter(({ type }) => type === 'warning');
    expect(warnings).toHaveLength(1);
    expect(warnings[0].text).toContain('Cross-Origin-Opener-Policy: same-origin');
    expect(warnings[0].text).toContain('Cross-Origin-Embedder-Policy: require-corp');
  });

  test('one thread where one was asked for is no reason to warn', async () => {
    const { page, said } = await visit(open);
    const { value, info } = await compute(page, { threads: 1 });
    expect(value).toBeCloseTo(14, 4);
    expect(info.threads).toBe(1);
    expect(info.threadsReason).toBeUndefined();
    expect(said).toEqual([]);
  });

  test('on the page on demand, with threads and with synchronous calls; in the worker without', async () => {
    const { page, said } = await visit();
    const answers = await page.evaluate(async () => {
      const { createEngine, heavy, known } = globalThis.headwise;
      const here = await createEngine({ threads: 2, offMainThread: false });
      const there = await createEngine({ threads: 2 });
      const x = heavy(50);
      const sync = here.attentionSync(...x).output.data;
      const { output } = await there.attention(...x);
      let code;
      try {
        there.attentionSync(...x);
      } catch (error) {
        code = error.code;
      }
      const report = { info: here.info, code, value: await known(here) };
      report.same = sync.every((number, i) => number === output.data[i]);
      here.dispose();
      there.dispose();
      return report;
    });
    expect(answers.info).toMatchObject({ threads: 2, offMainThread: false });
    expect(answers.value).toBeCloseTo(14, 4);
    expect(answers.same).toBe(true);
    expect(answers.code).toBe('UNSUPPORTED');
    expect(said).toEqual([]);
  });

  test.each([true, false])(
    'a long call leaves the page alive (in a worker: %s)',
    async (offMainThread) => {
      const { page } = await visit();
      const frames = await page.evaluate(async (inWorker) => {
        const { createEngine, heavy } = globalThis.headwise;
        const engine = await createEngine({ threads: 1, offMainThread: inWorker });
        const x = heavy(2048);
        let frames = 0;
        let running = true;
        const count = () => {
          frames++;
          if (running) requestAnimationFrame(count);
        };
        const start = performance.now();
        const calls = (async () => {
          do await engine.attention(...x);
          while (performance.now() - start < 2000);
        })();
        requestAnimationFrame(count);
        await calls;
        running = false;
        engine.dispose();
        return frames;
      }, offMainThread);
      // A page that is blocked by each call draws one frame a call: two or three.
      expect(frames).toBeGreaterThan(8);
    },
  );

  test.each([true, false])('abort within a long call (in a worker: %s)', async (offMainThread) => {
    const { page, said } = await visit();
    const report = await page.evaluate(async (inWorker) => {
      const { createEngine, heavy, known } = globalThis.headwise;
      const engine = await createEngine({ threads: 2, offMainThread: inWorker });
      const controller = new AbortController();
      const call = engine.attention(...heavy(8192), { signal: controller.signal });
      setTimeout(() => controller.abort(), 100);
      const failure = await call.then(
        () => 'ended by itself',
        ({ name }) => name,
      );
      const value = await known(engine);
      engine.dispose();
      return { failure, value };
    }, offMainThread);
    expect(report.failure).toBe('AbortError');
    expect(report.value).toBeCloseTo(14, 4);
    expect(errorsIn(said)).toEqual([]);
  });

  test.each([true, false])(
    'dispose within a long call (in a worker: %s)',
    async (offMainThread) => {
      const { page, said } = await visit();
      const codes = await page.evaluate(async (inWorker) => {
        const { createEngine, heavy } = globalThis.headwise;
        const engine = await createEngine({ threads: 2, offMainThread: inWorker });
        const x = heavy(8192);
        const codeOf = (call) =>
          call.then(
            () => 'ended by itself',
            ({ code }) => code,
          );
        const calls = [codeOf(engine.attention(...x)), codeOf(engine.attention(...x))];
        await new Promise((resolve) => setTimeout(resolve, 100));
        engine.dispose();
        engine.dispose();
        return Promise.all([...calls, codeOf(engine.attention(...x))]);
      }, offMainThread);
      expect(codes).toEqual(['DISPOSED', 'DISPOSED', 'DISPOSED']);
      expect(errorsIn(said)).toEqual([]);
      const { value } = await compute(page, { threads: 2 });
      expect(value).toBeCloseTo(14, 4);
    },
  );
});
