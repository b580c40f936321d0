// Scripts: finds the C++ and Emscripten toolchain, or makes it. The order: emcc on the PATH, $EMSDK, the Debian root in
// the cache (made when it is missing and can be made), else words on what to install.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { debianRoot, obstacle } from './debian-root.mjs';
import { Failure, note, step } from './log.mjs';
import { root } from './places.mjs';
import { ask, has, run } from './run.mjs';
import { atLeast, findVersion } from './version.mjs';

/** Older ones break pthreads under Vite, or lack the final relaxed-SIMD opcodes. */
const minimalEmscripten = [4, 0, 5];
const minimalCmake = [3, 25];

/** What a toolchain of the machine's own lacks, in words; an empty list when it will do. */
function lacks(env) {
  const missing = [];
  const version = (command) => findVersion(ask(command, ['--version'], { env }));
  if (!atLeast(version('emcc'), minimalEmscripten))
    missing.push(`emcc ≥ ${minimalEmscripten.join('.')}`);
  if (!atLeast(version('cmake'), minimalCmake)) missing.push(`cmake ≥ ${minimalCmake.join('.')}`);
  if (!version('ninja')) missing.push('ninja');
  if (!version('c++')) missing.push('a C++ compiler');
  const includes = [
    process.env.HEADWISE_XSIMD_INCLUDE,
    '/usr/include',
    '/usr/local/include',
    '/opt/homebrew/include',
  ];
  if (!includes.some((path) => path && existsSync(join(path, 'xsimd/xsimd.hpp'))))
    missing.push('xsimd ≥ 13 (headers)');
  if (!existsSync('/usr/src/googletest/CMakeLists.txt'))
    missing.push('the source of GoogleTest in /usr/src/googletest');
  return missing;
}

function onThisMachine(kind, env) {
  return {
    kind,
    stamp: ask('emcc', ['--version'], { env })?.split('\n')[0] ?? '',
    run: (command, args, options = {}) =>
      run(command, args, { cwd: root, ...options, env: { ...env, ...options.env } }),
  };
}

function environmentOf(emsdk) {
  const path = [join(emsdk, 'upstream', 'emscripten'), process.env.PATH].join(':');
  return { ...process.env, PATH: path, EMSDK: emsdk };
}

async function find() {
  const wanted = process.env.HEADWISE_TOOLCHAIN; // 'path', 'emsdk' or 'root', to leave the order
  const passedOver = [];
  const candidates = [
    ['path', has('emcc'), process.env],
    [
      'emsdk',
      Boolean(process.env.EMSDK),
      process.env.EMSDK ? environmentOf(process.env.EMSDK) : {},
    ],
  ];
  for (const [kind, there, env] of candidates) {
    if (!there || (wanted && wanted !== kind)) continue;
    const missing = lacks(env);
    if (missing.length === 0) return onThisMachine(kind, env);
    passedOver.push(
      `${kind === 'path' ? 'emcc on the PATH' : '$EMSDK'} lacks ${missing.join(', ')}`,
    );
  }
  for (const reason of passedOver) note(`not used: ${reason}`);
  const reason = wanted && wanted !== 'root' ? `HEADWISE_TOOLCHAIN is ${wanted}` : obstacle();
  if (reason === null) return debianRoot();
  throw new Failure(
    [
      'No toolchain for C++ and WebAssembly.',
      ...passedOver,
      `A Debian root in the cache cannot be made: ${reason}.`,
      `Either run this as root on Debian or Ubuntu, or install emsdk (Emscripten ≥ ${minimalEmscripten.join('.')}; ` +
        `its "activate" and "source emsdk_env.sh"), cmake ≥ ${minimalCmake.join('.')}, ninja, a C++20 compiler, ` +
        'xsimd ≥ 13 and the source of GoogleTest (Debian: cmake ninja-build g++ libxsimd-dev googletest).',
    ].join('\n'),
  );
}

let found;
/** The toolchain: `run(command, args, options)` runs a program with it, in the checkout. Found once a process. */
export function toolchain() {
  found ??= find().then((result) => {
    step(
      `toolchain: ${{ path: 'emcc on the PATH', emsdk: '$EMSDK', root: 'Debian root in the cache' }[result.kind]}`,
    );
    return result;
  });
  return found;
}
