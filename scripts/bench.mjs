// Scripts: `npm run bench -- [options]` builds the package, installs the rivals (tests/bench/package.json) and measures them
// side by side. `npm run bench -- --help` tells the options.
import { installPackages } from './lib/install.mjs';
import { main } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';

await main(async () => {
  const args = process.argv.slice(2);
  const measures = !args.includes('--help') && !args.includes('--list');
  if (measures) await buildPackage();
  await installPackages('tests/bench');
  const { code } = await run(process.execPath, [at('tests/bench/run.mjs'), ...args], {
    cwd: at(),
    allowFailure: true,
  });
  process.exitCode = code;
});
