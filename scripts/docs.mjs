// Scripts: `npm run docs` writes the API reference from the docstrings, to build/docs.
import { installPackages } from './lib/install.mjs';
import { main, note, step } from './lib/log.mjs';
import { at } from './lib/places.mjs';
import { runPackaged } from './lib/typescript.mjs';

await main(async () => {
  await installPackages();
  step('writing the API reference');
  await runPackaged(
    'typedoc/bin/typedoc',
    [
      '--tsconfig',
      'tsconfig.build.json',
      '--entryPoints',
      'web/src/index.ts',
      '--entryPoints',
      'web/src/onnx/index.ts',
      '--out',
      'build/docs',
      '--readme',
      'none',
    ],
    { cwd: at() },
  );
  note('build/docs/index.html');
});
