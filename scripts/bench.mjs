// Scripts: `npm run bench` builds the package, installs the rivals of tests/bench and measures side by side. Arguments go
// on to tests/bench/run.mjs.
import { installPackages } from './lib/install.mjs';
import { main, step } from './lib/log.mjs';
import { newerNode } from './lib/newer-node.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';

await main(async () => {
  await buildPackage();
  await installPackages('tests/bench');
  const node = (await newerNode()) ?? { path: process.execPath, version: process.versions.node };
  step(`measuring, Node ${node.version}`);
  await run(node.path, [at('tests/bench/run.mjs'), ...process.argv.slice(2)], {
    cwd: at('tests/bench'),
  });
});
