// Bench: the system's Chromium, and the bench's pages: served by Vite's development server with the two headers that threads
// need.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';
import { createServer } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
const checkout = fileURLToPath(new URL('../../..', import.meta.url));
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
const places = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
];

/** Vite's server, listening; its first address is that of tests/bench. */
export async function serveBench() {
  const server = await createServer({
    configFile: false,
    root,
    logLevel: 'error',
    server: {
      host: '127.0.0.1',
      port: 0,
      headers: isolation,
      hmr: false,
      watch: null,
      fs: { allow: [checkout] },
    },
    optimizeDeps: {
      entries: [],
      // Made of CommonJS modules, so bundled by Vite first; the others are ES modules that find their files by their address.
      include: ['@tensorflow/tfjs', '@tensorflow/tfjs-backend-wasm'],
      exclude: ['onnxruntime-web', '@jax-js/jax'],
    },
    worker: { format: 'es' },
  });
  return server.listen();
}

/** @param {string[]} switches beside those that every page of the bench wants */
export function launchChromium(switches) {
  const executablePath = process.env.CHROMIUM ?? places.find((place) => existsSync(place));
  if (!executablePath)
    throw new Error(
      `no Chromium at ${places.join(', ')}; install it, or name it in the variable CHROMIUM`,
    );
  return chromium.launch({
    executablePath,
    args: [
      '--headless=new',
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // Pages that are not in front run like the one that is.
      '--disable-background-timer-throttling',
      '--disable-backgrounding-occluded-windows',
      '--disable-renderer-backgrounding',
      ...switches,
    ],
  });
}
