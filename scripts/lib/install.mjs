// Scripts: the npm packages of package-lock.json, installed when they are missing or stale. Needs none of them itself.
import { at } from './places.mjs';
import { note, seconds, step } from './log.mjs';
import { run } from './run.mjs';
import { whenStale } from './stamps.mjs';

/** Installs what `folder` (a path in the checkout; the checkout itself by default) locks. */
export async function installPackages(folder = '.') {
  const start = performance.now();
  const file = at(folder, 'node_modules', '.headwise-installed');
  const inputs = [at(folder, 'package.json'), at(folder, 'package-lock.json')];
  const done = await whenStale(
    'packages',
    { inputs, outputs: [at(folder, 'node_modules')], file },
    async () => {
      step(folder === '.' ? 'installing npm packages' : `installing npm packages of ${folder}`);
      // No install scripts: nothing here needs one, and they would fail where nothing may be fetched from elsewhere.
      await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd: at(folder),
        echo: 'progress',
      });
    },
  );
  if (done) note(`installed in ${seconds(start)}`);
}
