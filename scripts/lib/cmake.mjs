// Scripts: configures and builds a CMake preset with the toolchain. Ninja does no work twice.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { withLock } from './lock.mjs';
import { note, seconds, step } from './log.mjs';
import { newerNode } from './newer-node.mjs';
import { whenStale } from './stamps.mjs';
import { toolchain } from './toolchain.mjs';
import { at } from './places.mjs';

// The last of the libraries that Emscripten compiles for itself before anything links.
const systemLibrary = 'var/cache/emscripten/sysroot/lib/wasm32-emscripten/libc++-mt-noexcept.a';

const isWasm = (preset) => preset === 'wasm';

/**
 * Configures a preset when it is new, or when the toolchain or the presets have changed; CMake itself sees the rest.
 * @param {string} preset
 */
export async function configure(preset) {
  const tools = await toolchain();
  const args = ['cmake', '--preset', preset, '--log-level=WARNING'];
  if (isWasm(preset)) {
    args.unshift('emcmake');
    // The root in the cache has a Node that is new enough; elsewhere the tests must not meet one without relaxed SIMD.
    const node = tools.kind === 'root' ? null : await newerNode();
    if (node) args.push(`-DCMAKE_CROSSCOMPILING_EMULATOR=${node.path}`);
  }
  const what = {
    inputs: [at('CMakePresets.json')],
    outputs: tools.kind === 'root' ? [] : [at('build', preset, 'build.ninja')],
    extra: [tools.kind, tools.stamp, ...args].join(' '),
    file: at('build', preset, '.headwise-configured'),
  };
  await whenStale(preset, what, () =>
    tools.run(args[0], [...args.slice(1), '--fresh'], { echo: 'progress' }),
  );
}

/**
 * Builds a preset, or some targets of it.
 * @param {string} preset
 * @param {string[]} [targets]
 */
export async function buildPreset(preset, targets = []) {
  const tools = await toolchain();
  const start = performance.now();
  step(`building ${preset}`);
  await configure(preset);
  if (isWasm(preset) && tools.folder && !existsSync(join(tools.folder, systemLibrary))) {
    note(
      'the toolchain is new: Emscripten compiles its system libraries first, a few minutes, once',
    );
  }
  const args = ['--build', '--preset', preset, '-j', String(availableParallelism())];
  if (targets.length > 0) args.push('--target', ...targets);
  const { output } = await withLock(preset, () => tools.run('cmake', args, { echo: 'progress' }));
  if (/\[\d+\/\d+\] (Building|Linking)/.test(output)) note(`built in ${seconds(start)}`);
  else note('up to date');
}

/**
 * The two WebAssembly modules, dist/wasm/headwise-simd and headwise-relaxed.
 */
export const buildModules = () => buildPreset('wasm', ['module']);
