// Scripts: `npm test` installs, builds and runs every test, prints each runner's own summary and, last, the sum. Parts
// named as arguments (native, tsan, serial, wasm, js, webgpu, browser, bundlers) run alone.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename } from 'node:path';

import { browsers } from './lib/browsers.mjs';
import { buildPreset } from './lib/cmake.mjs';
import { installPackages } from './lib/install.mjs';
import { Failure, main, note, step } from './lib/log.mjs';
import { newerNode } from './lib/newer-node.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';
import { filesBelow } from './lib/stamps.mjs';
import { add, closingLine, ctestCases, isGreen, jestCases, nothing } from './lib/summary.mjs';
import { toolchain } from './lib/toolchain.mjs';
import { vulkan } from './lib/vulkan.mjs';

const testPrograms = (pattern) =>
  filesBelow(at('tests/cpp'))
    .map((file) => basename(file))
    .filter((name) => name.endsWith('_test.cc') && pattern.test(name))
    .map((name) => basename(name, '.cc'));

/** Builds a preset's tests (those whose names match) and runs them through ctest. */
async function cpp(preset, pattern = /./) {
  const tools = await toolchain();
  const programs = testPrograms(pattern);
  const wasm = preset.startsWith('wasm-');
  await buildPreset(preset, wasm ? ['headwise_tests'] : programs);
  step(`C++ tests, ${preset}`);
  const args = [
    '--test-dir',
    `build/${preset}`,
    '--output-on-failure',
    '--no-tests=error',
    '-j',
    '2',
  ];
  if (!wasm) args.push('-R', `^(${programs.join('|')})[.]`);
  const log = `build/${preset}/Testing/Temporary/LastTest.log`;
  await tools.run('rm', ['-f', log]);
  const { output } = await tools.run('ctest', args, { allowFailure: true });
  const { output: text } = await tools.run('cat', [log], { echo: false, allowFailure: true });
  return ctestCases(text, output);
}

/** Runs one of jest.config.js's projects, in this Node or another. */
async function jest(
  project,
  { node = process.execPath, version = process.versions.node, env = {} } = {},
) {
  step(`Jest, ${project}, Node ${version}`);
  const report = at('build', 'reports', `jest-${project}-${version}.json`);
  mkdirSync(at('build', 'reports'), { recursive: true });
  rmSync(report, { force: true });
  const flags = [
    '--selectProjects',
    project,
    '--maxWorkers=2',
    '--json',
    `--outputFile=${report}`,
    '--ci',
  ];
  await run(node, [at('node_modules/jest/bin/jest.js'), ...flags], {
    cwd: at(),
    env: {
      ...process.env,
      ...env,
      NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning',
    },
    allowFailure: true,
    echo: 'stderr', // Jest's words; standard output is the report
  });
  try {
    return jestCases(JSON.parse(readFileSync(report, 'utf8')));
  } catch {
    return { ...nothing, failed: 1 }; // it ended before it could report
  }
}

/** The package's tests in the newest Node at hand (both builds), and in this one where that is another. */
async function js() {
  await buildPackage();
  const newer = await newerNode();
  let sum = nothing;
  if (newer) sum = add(sum, await jest('js', { node: newer.path, version: newer.version }));
  if (newer?.path !== process.execPath) sum = add(sum, await jest('js'));
  return sum;
}

const parts = {
  native: () => cpp('native-debug'),
  // What shares memory between threads: the pool itself, and the drivers that run on it.
  tsan: () => cpp('native-tsan', /pool|job|attention|threads/),
  // The pool's twin without threads, and eight lanes where the other native builds have four.
  serial: () => cpp('native-serial'),
  wasm: async () => add(await cpp('wasm-simd'), await cpp('wasm-relaxed')),
  js,
  // The GPU backend, on Chromium's SwiftShader where there is no GPU; the attention tests of js once more, over it.
  webgpu: async () => {
    await buildPackage();
    await installPackages('tests/webgpu');
    return jest('webgpu', { env: await vulkan() });
  },
  browser: async () => {
    await buildPackage();
    return jest('browser', { env: await browsers() });
  },
  bundlers: async () => {
    await buildPackage();
    await installPackages('tests/bundlers');
    return jest('bundlers', { env: await browsers() });
  },
};

await main(async () => {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !(name in parts));
  if (unknown.length > 0)
    throw new Failure(`no such part: ${unknown}; there are ${Object.keys(parts).join(', ')}`);
  await installPackages();
  const rows = [];
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    let cases;
    try {
      cases = await part();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      process.stderr.write(`✗ ${error.message}\n`); // the other parts still run
      cases = { ...nothing, failed: 1 };
    }
    rows.push([name, cases]);
  }
  step('summary');
  for (const [name, cases] of rows)
    note(`${name}: ${closingLine(cases)}`.replace(/^(\w+): /, (head) => head.padEnd(12)));
  const sum = rows.reduce((total, [, cases]) => add(total, cases), nothing);
  process.stdout.write(`${closingLine(sum)}\n`);
  process.exitCode = isGreen(sum) ? 0 : 1;
});
