// Tests, browser: the demo page, built into a folder of its own or served from source, and how a test reads its maps.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const vite = join(root, 'node_modules/vite/bin/vite.js');
const demo = join(root, 'web/demo');

function startVite(args) {
  const env = { ...process.env };
  delete env.NODE_OPTIONS; // Jest's own flags are not the child's
  const child = spawn(process.execPath, [vite, ...args], { cwd: demo, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output += chunk));
  return { child, output: () => output };
}

/** Builds the page for production. Resolves to { folder, remove }. */
export async function buildDemo() {
  const folder = await mkdtemp(join(tmpdir(), 'headwise-demo-'));
  const { child, output } = startVite(['build', '--outDir', folder, '--logLevel', 'warn']);
  const status = await new Promise((resolve, reject) =>
    child.on('error', reject).on('close', resolve),
  );
  if (status !== 0) throw new Error(`the demo did not build (${status})\n${output()}`);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Serves the page from its sources, as `npm start` does. Resolves to { url, close }. */
export async function serveDemoSources() {
  const { child, output } = startVite(['--host', '127.0.0.1', '--port', '0']);
  const closed = new Promise((resolve) => child.on('close', resolve));
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', () => {
      // eslint-disable-next-line no-control-regex -- Vite colours its words
      const found = /http:\/\/127\.0\.0\.1:\d+/u.exec(output().replace(/\x1b\[[\d;]*m/gu, ''));
      if (found) resolve(found[0]);
    });
    closed.then((status) => reject(new Error(`Vite ended with ${status}\n${output()}`)));
  });
  return {
    url,
    close: () => {
      child.kill();
      return closed;
    },
  };
}

/** Waits until every section shows its first numbers. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const readable = (selector) => document.querySelector(selector)?.textContent !== '';
    return (
      document.querySelectorAll('.hero-maps canvas').length === 4 &&
      document.querySelectorAll('.tokens li').length > 0 &&
      [...document.querySelectorAll('.verdict')].every((line) => line.textContent !== '') &&
      readable('.facts') &&
      document.querySelectorAll('.times tbody td').length > 0
    );
  });
}

/** Chooses the article's sizes for the walk-through, and waits for its numbers. */
export async function takeDrawnWeights(page) {
  await page.locator('.walk-weights select').selectOption('drawn');
  await page.waitForFunction(
    () => document.querySelector('#steps .shapes .shape')?.textContent === '(1, 4, 6)',
  );
}

/** The figure in a section whose title begins with a text. */
export function figure(page, section, title, index = 0) {
  return page
    .locator(`#${section} figure.map`)
    .filter({ has: page.locator('.map-title', { hasText: title }) })
    .nth(index);
}

/** What the keys read out of a map, cell by cell: an array of rows of texts. */
export async function readByKeys(map, rows, columns) {
  const stage = map.locator('.map-stage');
  const readout = map.locator('.map-readout');
  const texts = [];
  await stage.focus();
  await stage.press('Control+Home');
  for (let row = 0; row < rows; row++) {
    const line = [];
    for (let column = 0; column < columns; column++) {
      line.push(await readout.textContent());
      if (column + 1 < columns) await stage.press('ArrowRight');
    }
    texts.push(line);
    await stage.press('ArrowDown');
    await stage.press('Home');
  }
  await stage.press('Escape');
  return texts;
}

/** The number at the end of a readout; NaN where it says that the mask hides the cell. */
export function valueOf(text) {
  return Number(/[−-]?\d+\.\d+$/u.exec(text)?.[0].replace('−', '-') ?? NaN);
}
