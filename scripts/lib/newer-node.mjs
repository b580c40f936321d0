// Scripts: a Node that knows relaxed SIMD (22 or newer), for the tests of the relaxed build. Node 20 runs the package,
// but only its other build; where this process is one, a newer Node comes from npm into the cache.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { note, step } from './log.mjs';
import { cache } from './places.mjs';
import { ask, run } from './run.mjs';

const version = '24.22.3';

/** Does this process run WebAssembly with relaxed SIMD? */
export const isNewEnough = Number(process.versions.node.split('.')[0]) >= 22;

/**
 * A Node with relaxed SIMD: this one, or one from npm.
 * @returns {Promise<{ path: string, version: string } | null>} null, with a line that says why, where none can be had
 */
export async function newerNode() {
  if (isNewEnough) return { path: process.execPath, version: process.versions.node };
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(cache, `node-${version}`);
  const path = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(path)) {
    step(
      `fetching Node ${version} for the tests of the relaxed build (this is Node ${process.versions.node})`,
    );
    mkdirSync(folder, { recursive: true });
    const args = [
      'install',
      '--prefix',
      folder,
      '--no-save',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
    ];
    await run('npm', [...args, `${name}@${version}`], { echo: 'progress', allowFailure: true });
  }
  if (ask(path, ['--version']) !== null) return { path, version };
  note(
    `no Node ${version} for ${process.platform}-${process.arch}: the relaxed build is not tested in Node`,
  );
  return null;
}
