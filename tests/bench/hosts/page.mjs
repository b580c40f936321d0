// Bench: contenders in pages of Chromium, each in a browser context of its own and so in a process of its own.
import { launchChromium, serveBench } from './chromium.mjs';
import { failureOf } from './failure.mjs';

export const kind = 'chromium';

let server;
let browser;

async function start() {
  if (browser) return;
  server = await serveBench();
  browser = await launchChromium(['--disable-gpu']);
}

export async function describe() {
  await start();
  return `Chromium ${browser.version()}`;
}

/** Where TensorFlow's contenders find its binaries. */
const wasmPaths = '/node_modules/@tensorflow/tfjs-backend-wasm/dist/';

/** @param {import('../contenders/index.mjs').Contender} contender */
export async function startHost(contender, threads) {
  await start();
  const context = await browser.newContext();
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  let ended = false;
  const crashed = Promise.withResolvers();
  crashed.promise.catch(() => {});
  page.on('crash', () => {
    ended = true;
    crashed.reject(new Error('its page crashed'));
  });

  const call = async (method, args = {}, timeoutMs = 180_000) => {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => {
        ended = true;
        reject(new Error(`no answer within ${timeoutMs / 1000} s`));
      }, timeoutMs);
    });
    try {
      const answer = page.evaluate(
        ([name, value]) => globalThis.callStation(name, value),
        [method, args],
      );
      answer.catch(() => {});
      const { result, error } = await Promise.race([answer, crashed.promise, late]);
      if (error) throw failureOf(error);
      return result;
    } finally {
      clearTimeout(timer);
    }
  };

  const close = async () => {
    ended = true;
    await context.close();
  };

  // Arrays come as text: what a page returns is JSON.
  const read = async () => {
    const encoded = await call('readEncoded');
    if (encoded === null) return null;
    const bytes = Buffer.from(encoded, 'base64');
    return new Float32Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
    );
  };

  try {
    await page.goto(new URL('page/index.html', server.resolvedUrls.local[0]).href);
    await page.waitForFunction(() => globalThis.callStation !== undefined, undefined, {
      timeout: 30_000,
    });
    const options = { threads, wasmPaths, ...contender.options };
    const { about, work } = await call('create', { module: contender.module, options }, 60_000);
    return { about, work, call, close, read, ended: () => ended };
  } catch (error) {
    await close();
    if (complaints.length > 0) error.message += ` (${complaints[0]})`;
    throw error;
  }
}

export async function stop() {
  await browser?.close();
  await server?.close();
  browser = server = undefined;
}
