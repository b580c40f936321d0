// Scripts: `npm run build` makes the package in dist/: both WebAssembly modules and the compiled TypeScript.
import { main } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';

await main(buildPackage);
