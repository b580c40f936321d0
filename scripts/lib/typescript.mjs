// Scripts: compiles web/src to dist with declarations.
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { note, seconds, step } from './log.mjs';
import { at } from './places.mjs';
import { run } from './run.mjs';
import { whenStale } from './stamps.mjs';

/** Runs a program of node_modules. */
export const runPackaged = (script, args, options) =>
  run(process.execPath, [at('node_modules', script), ...args], options);

// dist/wasm/headwise-* are the modules' and stay; everything else there came from an earlier web/src.
function clean(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) clean(path);
    else if (!entry.name.startsWith('headwise-')) rmSync(path);
  }
}

export async function buildTypeScript() {
  const start = performance.now();
  const inputs = [
    at('web/src'),
    at('tsconfig.json'),
    at('tsconfig.build.json'),
    at('package.json'),
    at('package-lock.json'),
  ];
  step('compiling TypeScript');
  const done = await whenStale(
    'typescript',
    { inputs, outputs: [at('dist/index.js')] },
    async () => {
      const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
      const source = at('web/src/version.ts');
      if (existsSync(source) && !readFileSync(source, 'utf8').includes(`'${version}'`)) {
        throw new Error(`web/src/version.ts does not say ${version}, as package.json does`);
      }
      clean(at('dist'));
      await runPackaged('typescript/bin/tsc', ['-p', 'tsconfig.build.json'], {
        cwd: at(),
        echo: false,
      });
    },
  );
  note(done ? `compiled in ${seconds(start)}` : 'up to date');
}
