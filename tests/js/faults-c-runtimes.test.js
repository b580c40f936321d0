// Tests: the package in other places (C15): Deno, Bun, folders with odd names, a program that only imports it.

import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, runModule, runProcess } from './child.js';

const smoke = `
  import { createEngine } from 'headwise';
  const engine = await createEngine({ threads: 2 });
  const t = (x) => ({ data: Float32Array.from(x), shape: [1, 1, x.length, 1] });
  const { output } = await engine.attention(t([0]), t([0, 0]), t([2, 4]));
  console.log(JSON.stringify({ value: output.data[0], info: engine.info }));
  engine.dispose();
`;

/** The built package, installed in a folder of this name; `use(folder)` runs there. */
async function installed(name, use) {
  const parent = mkdtempSync(join(tmpdir(), 'headwise-'));
  const folder = join(parent, name);
  const target = join(folder, 'node_modules', 'headwise');
  mkdirSync(target, { recursive: true });
  cpSync(join(root, 'dist'), join(target, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(target, 'package.json'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'smoke.js'), smoke);
  try {
    return await use(folder);
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

function expectSmoke({ status, stdout, stderr }) {
  if (status !== 0) throw new Error(`ended with ${status}\n${stdout}\n${stderr}`);
  const { value, info } = JSON.parse(stdout.trim().split('\n').at(-1));
  expect(value).toBe(3);
  expect(info.threads === 2 || /\w+ \w+/.test(info.threadsReason)).toBe(true);
}

describe('C15, other places', () => {
  test.each(['plain', 'with some spaces', 'a#hash', 'with%20percent', 'Größe 多头 é'])(
    'Node, installed in a folder named "%s"',
    (name) =>
      installed(name, async (folder) => {
        expectSmoke(
          await runProcess(process.execPath, [join(folder, 'smoke.js')], { cwd: folder }),
        );
      }),
  );

  test('Node, run from another working directory', () =>
    installed('elsewhere', async (folder) => {
      expectSmoke(
        await runProcess(process.execPath, [join(folder, 'smoke.js')], { cwd: tmpdir() }),
      );
    }));

  const runtimes = [
    ['deno', ['run', '--allow-all', '--no-lock', 'smoke.js']],
    ['bun', ['run', 'smoke.js']],
  ];
  for (const [name, args] of runtimes) {
    const command = [
      process.env[`HEADWISE_${name.toUpperCase()}`],
      join(root, 'node_modules', '.bin', name),
    ].find((path) => path && existsSync(path));
    if (!command)
      process.stderr.write(
        `${name} not tested: not in node_modules (npm install --no-save ${name})\n`,
      );
    (command ? test : test.skip)(`${name}, and it ends by itself`, () =>
      installed(name, async (folder) => {
        expectSmoke(await runProcess(command, args, { cwd: folder }));
      }),
    );
  }

  test('importing does nothing observable', async () => {
    const { before, after, active } = await runModule(`
      const names = () => Reflect.ownKeys(globalThis).map(String).sort().join();
      globalThis.fetch = () => { throw new Error('fetched at import'); };
      const before = names();
      await import('headwise');
      console.log(JSON.stringify({ before, after: names(), active: process.getActiveResourcesInfo().filter((x) => /Worker|MessagePort/.test(x)) }));
    `);
    expect(after).toBe(before);
    expect(active).toEqual([]);
  });
});
