// Scripts: `npm run examples` builds the package and runs the documents' examples in Node. Names of examples as arguments
// run those alone.
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';

import { Failure, main, step } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';

await main(async () => {
  await buildPackage();
  const wanted = process.argv.slice(2).map((name) => basename(name, '.mjs'));
  const all = readdirSync(at('web/examples')).filter((name) => name.endsWith('.mjs'));
  const chosen = all.filter(
    (name) => wanted.length === 0 || wanted.includes(basename(name, '.mjs')),
  );
  if (chosen.length === 0) throw new Failure(`no such example; there are ${all.join(', ')}`);
  for (const name of chosen) {
    step(`web/examples/${name}`);
    await run(process.execPath, [at('web/examples', name)], { cwd: at() });
  }
});
