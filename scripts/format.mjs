// Scripts: `npm run format` lays out everything as `npm run check` wants it.
import { installPackages } from './lib/install.mjs';
import { main, step } from './lib/log.mjs';
import { at } from './lib/places.mjs';
import { sourceFiles } from './lib/sources.mjs';
import { toolchain } from './lib/toolchain.mjs';
import { runPackaged } from './lib/typescript.mjs';

await main(async () => {
  await installPackages();
  step('Prettier');
  await runPackaged('prettier/bin/prettier.cjs', ['--write', '--log-level=warn', '.'], {
    cwd: at(),
  });
  step('clang-format');
  const cpp = (await sourceFiles()).filter((name) => /^(cpp|tests\/cpp)\/.*\.(cc|h)$/.test(name));
  await (await toolchain()).run('clang-format', ['-i', ...cpp]);
});
