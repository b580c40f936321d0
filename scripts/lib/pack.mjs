// Scripts: packs the built package, and lets two well-kept tools look at the result: are its types found, is its manifest sound?
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';

import { at } from './places.mjs';
import { run } from './run.mjs';
import { runPackaged } from './typescript.mjs';

/**
 * Packs dist/ and what `files` names.
 * @returns {Promise<{ path: string, sha256: string, files: number, bytes: number }>}
 */
export async function pack(folder = at('build', 'pack')) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { output } = await run('npm', args, { cwd: at(), echo: false });
  const [{ filename, entryCount, size }] = JSON.parse(output.slice(output.indexOf('[')));
  const path = join(folder, filename);
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
  return { path, sha256, files: entryCount, bytes: size };
}

/** Both tools complain by a code other than 0. The package is ESM alone, which `--profile esm-only` says. */
export const lookAtPack = (path) => [
  [
    'attw',
    () =>
      runPackaged('@arethetypeswrong/cli/dist/index.js', [path, '--profile', 'esm-only'], {
        cwd: at(),
        allowFailure: true,
      }),
  ],
  [
    'publint',
    () =>
      runPackaged('publint/src/cli.js', ['run', path, '--strict'], {
        cwd: at(),
        allowFailure: true,
      }),
  ],
];
