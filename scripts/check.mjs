// Scripts: `npm run check` formats nothing and looks at everything: layout, mistakes, types, layers. All of it runs, and
// what is wrong is listed; `npm run format` repairs the layout.
import { installPackages } from './lib/install.mjs';
import { Failure, main, note, seconds, step } from './lib/log.mjs';
import { lookAtPack, pack } from './lib/pack.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';
import { sourceFiles } from './lib/sources.mjs';
import { tidy } from './lib/tidy.mjs';
import { toolchain } from './lib/toolchain.mjs';
import { buildTypeScript, runPackaged } from './lib/typescript.mjs';

await main(async () => {
  await installPackages();
  const wrong = [];
  const look = async (what, work) => {
    step(what);
    const start = performance.now();
    const { code } = await work();
    note(seconds(start));
    if (code !== 0) wrong.push(what);
  };
  const options = { cwd: at(), allowFailure: true };
  const names = await sourceFiles();
  const cpp = names.filter((name) => /^(cpp|tests\/cpp)\/.*\.(cc|h)$/.test(name));

  await look('Prettier', () =>
    runPackaged('prettier/bin/prettier.cjs', ['--check', '--log-level=warn', '.'], options),
  );
  await look('ESLint', () =>
    runPackaged(
      'eslint/bin/eslint.js',
      ['.', '--max-warnings=0', '--cache', '--cache-location', 'build/stamps/eslint'],
      options,
    ),
  );
  await look('tsc, web/src', () =>
    runPackaged('typescript/bin/tsc', ['-p', 'tsconfig.json'], options),
  );
  await buildTypeScript(); // the demo's types are the built package's
  await look('tsc, web/demo', () =>
    runPackaged('typescript/bin/tsc', ['-p', 'web/demo', '--noEmit'], options),
  );
  const layers = await run(process.execPath, [at('scripts/check-layers.mjs')], options);
  if (layers.code !== 0) wrong.push('layers');
  const tools = await toolchain();
  await look('clang-format', () =>
    tools.run('clang-format', ['--dry-run', '-Werror', ...cpp], { allowFailure: true }),
  );
  const complaints = await tidy(names);
  complaints.forEach((text) => process.stdout.write(`${text}\n`));
  if (complaints.length > 0) wrong.push('clang-tidy');

  await buildPackage();
  const { path } = await pack();
  for (const [tool, work] of lookAtPack(path)) await look(tool, work);

  if (wrong.length > 0) throw new Failure(`not clean: ${wrong.join(', ')}`);
  note('all clean');
});
