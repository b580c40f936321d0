// Scripts: `npm test` installs, builds and runs every test, prints each runner's own summary and, last, the sum. Parts
// named as arguments (native, tsan, serial, wasm, js, webgpu, browser, bundlers) run alone; `native:gemm` runs of a part the
// test files with that in their names, and `--list` only names the files.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename } from 'node:path';

import { browsers } from './lib/browsers.mjs';
import { buildPreset } from './lib/cmake.mjs';
import { installPackages } from './lib/install.mjs';
import { Failure, main, note, seconds, step } from './lib/log.mjs';
import { newerNode } from './lib/newer-node.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';
import { run } from './lib/run.mjs';
import { filesBelow } from './lib/stamps.mjs';
import { add, closingLine, ctestCases, isGreen, jestCases, nothing } from './lib/summary.mjs';
import { toolchain } from './lib/toolchain.mjs';
import { vulkan } from './lib/vulkan.mjs';

const testPrograms = (pattern, filter) =>
  filesBelow(at('tests/cpp'))
    .map((file) => basename(file, '.cc'))
    .filter((name) => name.endsWith('_test') && pattern.test(name) && name.includes(filter));

/** A preset's tests, those whose names match: each file a program, or all of them one program. */
const cpp = (preset, pattern = /./) => ({
  files: (filter) => testPrograms(pattern, filter),
  build: (programs) => buildPreset(preset, programs),
  test: (programs) => ctest(preset, ['-R', `^(${programs.join('|')})[.]`]),
});

async function ctest(preset, which) {
  step(`C++ tests, ${preset}`);
  const tools = await toolchain();
  const log = `build/${preset}/Testing/Temporary/LastTest.log`;
  await tools.run('rm', ['-f', log]);
  const args = ['--test-dir', `build/${preset}`, '--output-on-failure', '--no-tests=error'];
  const { output } = await tools.run('ctest', [...args, '-j', '2', ...which], {
    allowFailure: true,
  });
  const { output: text } = await tools.run('cat', [log], { echo: false, allowFailure: true });
  return ctestCases(text, output);
}

/** Runs projects of jest.config.js, in this Node or another. */
async function jest(
  projects,
  filter,
  { node = process.execPath, version = process.versions.node, env = {} } = {},
) {
  step(`Jest, ${projects.join(' and ')}, Node ${version}`);
  const report = at('build', 'reports', `jest-${projects[0]}-${version}.json`);
  mkdirSync(at('build', 'reports'), { recursive: true });
  rmSync(report, { force: true });
  const flags = [
    ...(filter ? ['--passWithNoTests', filter] : []),
    '--selectProjects',
    ...projects,
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

/** The package's tests in the newest Node at hand (both builds); what depends on the runtime also in this one. */
async function js(filter) {
  const newer = await newerNode();
  const all = ['js', 'js-once'];
  if (!newer || newer.path === process.execPath) return jest(all, filter);
  const inNewer = await jest(all, filter, { node: newer.path, version: newer.version });
  return add(inNewer, await jest(['js'], filter));
}

const jestFiles = (folders) => (filter) =>
  folders
    .flatMap((folder) => filesBelow(at(folder)))
    .map((file) => basename(file))
    .filter((name) => name.endsWith('.test.js') && name.includes(filter));

/** Each part: the names of its files; what it builds and installs; its tests, given what `build` found. */
const parts = {
  native: cpp('native-debug'),
  // What shares memory between threads: the pool itself, and the drivers that run on it.
  tsan: cpp('native-tsan', /pool|job|attention|threads/),
  // The pool's twin without threads, and eight lanes where the other native builds have four.
  serial: cpp('native-serial'),
  // Both builds, each one program.
  wasm: { build: () => buildPreset('wasm', ['headwise_tests']), test: () => ctest('wasm', []) },
  js: {
    files: jestFiles(['tests/js']),
    build: () => buildPackage(),
    test: (files, filter) => js(filter),
  },
  // The GPU backend, on Chromium's SwiftShader where there is no GPU; the attention tests of js once more, over it.
  webgpu: {
    files: jestFiles(['tests/webgpu']),
    build: async () => {
      await buildPackage();
      await installPackages('tests/webgpu');
      return vulkan();
    },
    test: (files, filter, env) => jest(['webgpu'], filter, { env }),
  },
  browser: {
    files: jestFiles(['tests/browser']),
    build: async () => {
      await buildPackage();
      return browsers();
    },
    test: (files, filter, env) => jest(['browser'], filter, { env }),
  },
  bundlers: {
    files: jestFiles(['tests/bundlers']),
    build: async () => {
      await buildPackage();
      await installPackages('tests/bundlers');
      return browsers();
    },
    test: (files, filter, env) => jest(['bundlers'], filter, { env }),
  },
};

/** What the arguments ask for: `{ name, filter, files }` of each part, in the order of `parts`. */
function wantedParts(args) {
  const asked = new Map(
    args.map((arg) => {
      const [name, filter = ''] = arg.split(':', 2);
      return [name, filter];
    }),
  );
  const unknown = [...asked.keys()].filter((name) => !Object.hasOwn(parts, name));
  if (unknown.length > 0)
    throw new Failure(`no such part: ${unknown}; there are ${Object.keys(parts).join(', ')}`);
  const names = Object.keys(parts).filter((name) => asked.size === 0 || asked.has(name));
  return names.map((name) => {
    const filter = asked.get(name) ?? '';
    if (filter && !parts[name].files)
      throw new Failure(`${name} is one program: no part of it runs alone`);
    const files = parts[name].files?.(filter) ?? [];
    if (filter && files.length === 0)
      throw new Failure(`no test of ${name} has '${filter}' in its name`);
    return { name, filter, files };
  });
}

/** Runs work and says how long it took; a Failure is told, and counted by the caller: the other parts still run. */
async function timed(work) {
  const start = performance.now();
  try {
    const result = await work();
    return { result, time: seconds(start) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`✗ ${error.message}\n`);
    return { failed: true, time: seconds(start) };
  }
}

await main(async () => {
  const args = process.argv.slice(2);
  const wanted = wantedParts(args.filter((arg) => arg !== '--list'));
  if (args.includes('--list')) {
    for (const { name, files } of wanted) process.stdout.write(`${name}: ${files.join(' ')}\n`);
    return;
  }
  await installPackages();
  // One part is built after the other, while the tests of those before it run: neither keeps all cores busy alone.
  let line = Promise.resolve();
  for (const part of wanted) {
    part.built = line.then(() => timed(() => parts[part.name].build(part.files)));
    line = part.built;
    line.catch(() => {}); // thrown where it is awaited
  }
  const rows = [];
  for (const { name, filter, files, built } of wanted) {
    const build = await built;
    const test = build.failed
      ? build
      : await timed(() => parts[name].test(files, filter, build.result));
    const cases = test.failed ? { ...nothing, failed: 1 } : test.result;
    rows.push({ name, cases, times: `built in ${build.time}, ran ${test.time}` });
  }
  step('summary');
  for (const { name, cases, times } of rows)
    note(`${`${name}: `.padEnd(12)}${closingLine(cases)} (${times})`);
  const sum = rows.reduce((total, { cases }) => add(total, cases), nothing);
  process.stdout.write(`${closingLine(sum)}\n`);
  process.exitCode = isGreen(sum) ? 0 : 1;
});
