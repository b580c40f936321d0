// Tests: the types as a program under --strict sees them: results by their options, and the read-me's own code.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, runProcess } from './child.js';

/** What the compiler says to these files: '' when they are right. */
async function compile(files, cwd) {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--lib',
    'es2022,dom',
  ];
  options.push('--module', 'esnext', '--moduleResolution', 'bundler');
  const { stdout } = await runProcess(process.execPath, [tsc, ...options, ...files], { cwd });
  return stdout;
}

test('a result has what its options ask for', async () => {
  expect(await compile(['tests/js/types/results.ts'], root)).toBe('');
});

// What the read-me's snippets speak of without having made it.
const before = {
  'const cache': `
    import type { Engine, Tensor } from 'headwise';
    declare const engine: Engine;
    declare const keys: Tensor, values: Tensor, q: Tensor, k: Tensor, v: Tensor;`,
  'past_key, past_value }': `
    import type { Engine, Tensor } from 'headwise';
    declare const engine: Engine;
    declare const Q: Tensor, K: Tensor, V: Tensor, past_key: Tensor, past_value: Tensor;`,
};

test("the read-me's code compiles", async () => {
  const page = readFileSync(join(root, 'README.md'), 'utf8');
  const blocks = [
    ...[...page.matchAll(/^```js\n(.*?)^```$/gmsu)].map(([, code]) => code),
    ...[...page.matchAll(/<script type="module">\n(.*?)<\/script>/gsu)].map(([, code]) => code),
  ];
  expect(blocks.length).toBeGreaterThan(3);
  const folder = mkdtempSync(join(tmpdir(), 'headwise-read-me-'));
  try {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules', 'headwise'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const files = blocks.map((code, i) => {
      const [, prelude = ''] = Object.entries(before).find(([sign]) => code.includes(sign)) ?? [];
      const name = `${i}.ts`;
      writeFileSync(
        join(folder, name),
        `${prelude}\n${code.replace('./headwise/dist/index.js', 'headwise')}\nexport {};\n`,
      );
      return name;
    });
    expect(await compile(files, folder)).toBe('');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
