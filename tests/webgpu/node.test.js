// Tests: in Node the package `webgpu`, installed beside headwise, is found without a word from the user; without it, the reason
// says that it is missing.

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const script =
  "import { createEngine } from 'headwise'; const e = await createEngine({ threads: 1 });" +
  'console.log(JSON.stringify(await e.gpuReady())); e.dispose(); process.exit();';

let folder;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headwise-'));
  mkdirSync(join(folder, 'node_modules', 'headwise'), { recursive: true });
  for (const name of ['dist', 'package.json'])
    cpSync(at(name), join(folder, 'node_modules', 'headwise', name), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function info() {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { cwd: folder },
  );
  return JSON.parse(stdout);
}

test('without the package', async () => {
  const { backend, gpuReason } = await info();
  expect(backend).toBe('wasm');
  expect(gpuReason).toMatch(/package 'webgpu' cannot be loaded/);
});

test('with it', async () => {
  symlinkSync(at('tests/webgpu/node_modules/webgpu'), join(folder, 'node_modules', 'webgpu'));
  // A GPU, or the reason why 'auto' leaves the adapter that Dawn found: either names it.
  const { gpu, gpuReason } = await info();
  expect(gpu?.description ?? gpuReason).toMatch(
    gpu === null ? /the adapter \(.+\) is software/ : /./,
  );
});
