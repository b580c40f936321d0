// Scripts: `npm run bench:gpu` measures the GPU backend beside our own WebAssembly, in Node, on the system's Vulkan driver.
// --software uses Chromium's SwiftShader instead; --most N leaves out shapes of more than N billion multiply-adds. --browser
// measures in a page of Chromium, beside onnxruntime-web's WebGPU operator; there --only 12x512
// takes the shapes that begin with 12x512.
import { browsers } from './lib/browsers.mjs';
import { installPackages } from './lib/install.mjs';
import { main } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';
import { vulkan } from './lib/vulkan.mjs';

await main(async () => {
  const args = process.argv.slice(2);
  await buildPackage();
  const inBrowser = args.includes('--browser');
  await installPackages(inBrowser ? 'tests/bench' : 'tests/webgpu');
  let env = {};
  if (inBrowser) env = { CHROMIUM: (await browsers()).HEADWISE_CHROMIUM };
  else if (args.includes('--software')) env = await vulkan();
  const program = inBrowser ? 'tests/bench/gpu-browser.mjs' : 'tests/bench/gpu.mjs';
  const { code } = await run(process.execPath, [at(program), ...args], {
    cwd: at(),
    env: { ...process.env, ...env },
    allowFailure: true,
  });
  process.exitCode = code;
});
