// Scripts: clang-tidy over the core and the bindings, only over files that changed since they were last found clean.
import { availableParallelism } from 'node:os';

import { configure } from './cmake.mjs';
import { note, seconds, step } from './log.mjs';
import { at } from './places.mjs';
import { hashOf, whenStale } from './stamps.mjs';
import { toolchain } from './toolchain.mjs';

// The bindings are compiled by Emscripten alone: clang-tidy takes its commands, and is told what em++ adds to them.
const sets = [
  { preset: 'native-debug', files: /^cpp\/src\/.*\.cc$/, extra: [] },
  {
    preset: 'wasm',
    files: /^cpp\/bindings\/.*\.cc$/,
    extra: [
      '--target=wasm32-unknown-emscripten',
      '-D__EMSCRIPTEN__',
      '-iwithsysroot/include/compat',
    ],
  },
];

/** @returns {Promise<string[]>} clang-tidy's words about each file that is not clean */
export async function tidy(names) {
  const start = performance.now();
  const tools = await toolchain();
  step('clang-tidy');
  const common = hashOf([
    at('.clang-tidy'),
    at('cpp/include'),
    ...names.filter((n) => /^cpp\/.*\.h$/.test(n)).map((n) => at(n)),
  ]);
  const queue = [];
  for (const { preset, files, extra } of sets) {
    await configure(preset);
    const sysroot = preset.startsWith('wasm') ? await emscriptenSysroot(tools) : null;
    const args = [
      '-p',
      `build/${preset}`,
      '--quiet',
      ...[...extra, ...(sysroot ? [`--sysroot=${sysroot}`] : [])].map(
        (arg) => `--extra-arg=${arg}`,
      ),
    ];
    for (const name of names.filter((n) => files.test(n))) queue.push({ name, args });
  }
  const complaints = [];
  let checked = 0;
  const worker = async () => {
    for (let item = queue.shift(); item; item = queue.shift()) {
      const { name, args } = item;
      let clean = true;
      const what = { inputs: [at(name)], outputs: [], extra: `${common} ${args.join(' ')}` };
      const stamp = `tidy-${name.replaceAll('/', '-')}`;
      try {
        await whenStale(stamp, what, async () => {
          checked++;
          note(name);
          const { code, output } = await tools.run('clang-tidy', [...args, name], {
            echo: false,
            allowFailure: true,
          });
          if (code !== 0) {
            complaints.push(output.trim());
            clean = false;
            throw new Error('not clean');
          }
        });
      } catch (error) {
        if (clean) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  note(`${checked} files looked at in ${seconds(start)}, the others unchanged`);
  return complaints;
}

async function emscriptenSysroot(tools) {
  const { output } = await tools.run('em-config', ['CACHE'], { echo: false });
  return `${output.trim().split('\n').at(-1)}/sysroot`;
}
