// Scripts: the whole package, dist/: npm packages, the WebAssembly modules, the compiled TypeScript.
import { buildModules } from './cmake.mjs';
import { installPackages } from './install.mjs';
import { buildTypeScript } from './typescript.mjs';

export async function buildPackage() {
  await installPackages();
  await buildModules();
  await buildTypeScript();
}
