// Scripts: a Vulkan driver for Dawn in Node: the machine's own where the caller names one, else Chromium's SwiftShader, which
// computes on the CPU. Dawn's loader looks for libvulkan.so.1 where LD_LIBRARY_PATH says.
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { browsers } from './browsers.mjs';
import { note } from './log.mjs';
import { at } from './places.mjs';

const folders = ['/usr/lib/chromium', '/usr/lib/chromium-browser', '/opt/google/chrome'];

/** Environment variables for a process that uses the package `webgpu`. Those that are set already win. */
export async function vulkan() {
  if (process.env.VK_ICD_FILENAMES || process.env.VK_DRIVER_FILES) {
    note('Vulkan: the driver that the environment names');
    return {};
  }
  const { HEADWISE_CHROMIUM } = await browsers();
  const folder = [dirname(HEADWISE_CHROMIUM), ...folders].find((path) =>
    existsSync(join(path, 'vk_swiftshader_icd.json')),
  );
  if (folder === undefined) {
    note('Vulkan: no SwiftShader beside Chromium; the system’s driver, if there is one');
    return {};
  }
  // The loader alone: the folder's other libraries are Chromium's business.
  const libraries = at('build', 'vulkan');
  const link = join(libraries, 'libvulkan.so.1');
  mkdirSync(libraries, { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(join(folder, 'libvulkan.so.1'), link);
  note(`Vulkan: SwiftShader of ${folder}`);
  const paths = [libraries, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  return {
    VK_ICD_FILENAMES: join(folder, 'vk_swiftshader_icd.json'),
    LD_LIBRARY_PATH: paths,
  };
}
