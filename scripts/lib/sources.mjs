// Scripts: the checkout's own files, as git knows them: tracked ones, and new ones that it does not ignore.
import { existsSync, lstatSync, readFileSync } from 'node:fs';

import { at, root } from './places.mjs';
import { run } from './run.mjs';

/** Paths relative to the checkout, with '/', sorted. */
export async function sourceFiles() {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard'];
  const { output } = await run('git', args, { cwd: root, echo: false });
  const names = [...new Set(output.split('\n'))].filter(
    (name) => name !== '' && existsSync(at(name)),
  );
  return names.filter((name) => lstatSync(at(name)).isFile()).sort();
}

export const textOf = (name) => readFileSync(at(name), 'utf8');
