// Scripts: does work only when what it depends on has changed. A stamp holds a hash of the inputs' contents.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { withLock } from './lock.mjs';
import { stamps } from './places.mjs';

/** Every file below a path (or the file itself), sorted; nothing where there is nothing. */
export function filesBelow(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) =>
      entry.isDirectory() ? filesBelow(join(path, entry.name)) : [join(path, entry.name)],
    );
}

/** A hash over names and contents of everything below the paths, and over `extra`. */
export function hashOf(paths, extra = '') {
  const hash = createHash('sha256').update(extra);
  for (const file of paths.flatMap(filesBelow))
    hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

/**
 * Runs `work` unless it ran before on the same inputs and its outputs still stand. Whoever else wants it waits.
 * @param {string} name of the stamp
 * @param {{ inputs: string[], outputs: string[], extra?: string, file?: string }} what
 *   file: where the stamp lies, when it must share the fate of something else (node_modules, say)
 * @returns {Promise<boolean>} whether there was something to do
 */
export async function whenStale(name, { inputs, outputs, extra, file = join(stamps, name) }, work) {
  return withLock(name, async () => {
    const hash = hashOf(inputs, extra);
    const old = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (old === hash && outputs.every((output) => existsSync(output))) return false;
    rmSync(file, { force: true });
    await work();
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, hash);
    return true;
  });
}
