// Scripts: `npm run release` makes what is to be published and publishes nothing: it wants a clean checkout and a version that
// the changelog knows, checks, tests, packs twice (the two must be the same to the byte), and prints the command for the owner.
import { readFileSync } from 'node:fs';

import { Failure, main, note, step } from './lib/log.mjs';
import { lookAtPack, pack } from './lib/pack.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { ask, run } from './lib/run.mjs';

await main(async () => {
  const { name, version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  if (ask('git', ['-C', at(), 'status', '--porcelain']) !== '')
    throw new Failure('the checkout has changes that are not committed');
  if (!readFileSync(at('CHANGELOG.md'), 'utf8').includes(`## ${version}`))
    throw new Failure(`CHANGELOG.md has no section ${version}`);

  await buildPackage();
  for (const script of ['check', 'test']) {
    step(`npm run ${script}`);
    await run('npm', ['run', '--silent', script], { cwd: at() });
  }

  step('packing');
  const first = await pack();
  const { path, sha256, files, bytes } = await pack();
  if (first.sha256 !== sha256) throw new Failure('two packs of one checkout differ');
  for (const [tool, look] of lookAtPack(path)) {
    if ((await look()).code !== 0) throw new Failure(`${tool} is not content`);
  }

  note(`${name} ${version}: ${files} files, ${bytes} bytes, sha256 ${sha256}`);
  note('Nothing was published. Its owner publishes with:');
  process.stdout.write(`npm publish ${path} --access public\n`);
});
