// Scripts: `npm run bench:gpu` measures the GPU backend beside our own WebAssembly, in Node, on the system's Vulkan driver.
// --software uses Chromium's SwiftShader instead; --most N leaves out shapes of more than N billion multiply-adds.
import { installPackages } from './lib/install.mjs';
import { main } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';
import { vulkan } from './lib/vulkan.mjs';

await main(async () => {
  const args = process.argv.slice(2);
  await buildPackage();
  await installPackages('tests/webgpu');
  const env = args.includes('--software') ? await vulkan() : {};
  const { code } = await run(process.execPath, [at('tests/bench/gpu.mjs'), ...args], {
    cwd: at(),
    env: { ...process.env, ...env },
    allowFailure: true,
  });
  process.exitCode = code;
});
