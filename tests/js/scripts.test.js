// Tests: the scripts' pure parts: versions, summaries, mirrors, layers.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

import config from '../../jest.config.js';
import { aptOptions, debLine } from '../../scripts/lib/debian-root.mjs';
import { breaches, opensWithItsLayer } from '../../scripts/lib/layers.mjs';
import { closingLine, ctestCases, isGreen, jestCases } from '../../scripts/lib/summary.mjs';
import { atLeast, findVersion } from '../../scripts/lib/version.mjs';

describe('versions', () => {
  test.each([
    ['emcc (Emscripten gcc/clang-like replacement + linker) 6.0.5 ()', [6, 0, 5]],
    ['cmake version 3.25.1', [3, 25, 1]],
    ['no number', null],
    [null, null],
  ])('%s', (text, expected) => expect(findVersion(text)).toEqual(expected));

  test.each([
    [[4, 0, 5], [4, 0, 5], true],
    [[4, 0, 10], [4, 0, 5], true],
    [[4, 0], [4, 0, 5], false],
    [[3, 1, 69], [4, 0, 5], false],
    [[10, 0], [9, 9, 9], true],
    [null, [1], false],
  ])('%j is at least %j: %s', (a, b, expected) => expect(atLeast(a, b)).toBe(expected));
});

describe('summaries', () => {
  const log = [
    '[==========] 5 tests from 2 test suites ran. (3 ms total)',
    '[  PASSED  ] 3 tests.',
    '[  SKIPPED ] 1 test, listed below:',
    '[  SKIPPED ] A.Skipped',
    '[  FAILED  ] 1 test, listed below:',
    '[  FAILED  ] A.Broken',
    '[  PASSED  ] 1 test.',
  ].join('\n');

  test('cases of GoogleTest programs are added up', () => {
    const output = '50% tests passed, 1 tests failed out of 2';
    expect(ctestCases(log, output)).toEqual({ passed: 4, failed: 1, skipped: 1 });
  });

  test('a program that crashed counts, though it lists no case', () => {
    const output = '0% tests passed, 2 tests failed out of 2';
    expect(ctestCases('[  PASSED  ] 3 tests.', output).failed).toBe(2);
  });

  test('a ctest that could not run is a failure', () => {
    expect(ctestCases('', 'No tests were found!!!').failed).toBe(1);
  });

  test('a Jest file that could not be loaded is a failure', () => {
    const report = {
      numPassedTests: 7,
      numFailedTests: 0,
      numRuntimeErrorTestSuites: 1,
      numPendingTests: 2,
      numTodoTests: 0,
    };
    expect(jestCases(report)).toEqual({ passed: 7, failed: 1, skipped: 2 });
  });

  test('the closing line names what was skipped, and nothing run is not green', () => {
    expect(closingLine({ passed: 2, failed: 0, skipped: 0 })).toBe('2 passed, 0 failed');
    expect(closingLine({ passed: 2, failed: 1, skipped: 3 })).toBe('2 passed, 1 failed, 3 skipped');
    expect(isGreen({ passed: 0, failed: 0, skipped: 3 })).toBe(false);
    expect(isGreen({ passed: 2, failed: 1, skipped: 0 })).toBe(false);
    expect(isGreen({ passed: 2, failed: 0, skipped: 0 })).toBe(true);
  });
});

describe("the machine's apt settings", () => {
  test("the mirror is the one of Debian itself, not of its security updates or of others'", () => {
    const targets = [
      'tool://mirror/tools|Vendor|Tools|',
      'tool://mirror/security|Debian|Debian-Security|/keys/a.gpg',
      'tool://mirror/debian|Debian|Debian|/keys/b.gpg',
    ].join('\n');
    expect(debLine(targets, 'suite')).toBe(
      'deb [signed-by=/keys/b.gpg] tool://mirror/debian suite main',
    );
    expect(debLine('tool://mirror/ubuntu|Ubuntu|Ubuntu|', 'suite')).toBeNull();
  });

  test('what decides how a mirror is reached goes along, the rest stays', () => {
    const dump = 'Acquire::Check-Valid-Until "false";\nAPT::Architecture "amd64";\n';
    expect(aptOptions(dump)).toEqual(['--aptopt=Acquire::Check-Valid-Until "false"']);
  });
});

describe('layers', () => {
  test.each([
    ['cpp/src/nn/linear.cc', '#include <xsimd/xsimd.hpp>', 'xsimd only in cpp/src/simd'],
    ['cpp/src/nn/linear.cc', '#include "simd/simd.h"', 'no SIMD in plans and drivers'],
    ['cpp/src/kernels/a.h', '#include <atomic>', 'no threads in kernels'],
    ['cpp/src/kernels/a.h', '#include "attention/plan.h"', 'a kernel knows nothing of the drivers'],
    ['cpp/src/gemm/gemm.cc', '#include <emscripten/bind.h>', 'emscripten only in cpp/bindings'],
    ['cpp/include/headwise/a.h', '#include "simd/simd.h"', 'public headers include only public'],
    ['cpp/src/memory/a.cc', '  std::printf("x");', 'the core neither prints'],
    ['web/src/engine.ts', 'await navigator.gpu.requestAdapter()', 'WebGPU calls only in'],
    ['web/src/onnx/a.ts', "import { x } from '../wasm/core.js';", "the engine's public calls"],
    ['web/demo/src/a.ts', "import { x } from '../../src/engine.js';", 'import only the package'],
    ['web/examples/a.mjs', "import { x } from '../../dist/index.js';", 'import only the package'],
  ])('%s: %s', (name, line, words) => {
    expect(breaches(name, `// Layer: x\n${line}\n`).join()).toContain(words);
  });

  test.each([
    ['cpp/src/simd/simd.h', '#include <xsimd/xsimd.hpp>'],
    ['cpp/bindings/a.cc', '#include <emscripten/bind.h>'],
    ['cpp/src/nn/linear.cc', '// no xsimd::batch here'],
    ['web/demo/src/a.ts', "import { createEngine } from 'headwise';"],
    ['web/demo/src/a.ts', "import { x } from '../../../examples/lib/matrix.mjs';"],
  ])('%s may: %s', (name, line) => expect(breaches(name, line)).toEqual([]));

  test('a file opens with its layer and purpose', () => {
    expect(opensWithItsLayer('// Kernel: one tile.\n')).toBe(true);
    expect(opensWithItsLayer('#!/usr/bin/env node\n// Scripts: does it.\n')).toBe(true);
    expect(opensWithItsLayer('# Build: options.\n')).toBe(true);
    expect(opensWithItsLayer('"""Fixtures: cases."""\n')).toBe(true);
    expect(opensWithItsLayer('// does something\n')).toBe(false);
    expect(opensWithItsLayer('import x from "y";\n// Kernel: late.\n')).toBe(false);
  });
});

describe('what CONTRIBUTING.md tells to run', () => {
  const here = (path) => new URL(`../../${path}`, import.meta.url);
  const text = readFileSync(here('CONTRIBUTING.md'), 'utf8');
  const commands = [...text.matchAll(/`((?:npm|node) [^`]+)`/g)].map(([, command]) => command);
  const list = (...args) =>
    execFileSync(process.execPath, [here('scripts/test.mjs').pathname, '--list', ...args], {
      encoding: 'utf8',
    });

  test.each(commands)('%s: is there', (command) => {
    const [program, ...words] = command.split(' ');
    if (program === 'node') return expect(readFileSync(here(words[0]), 'utf8')).not.toBe('');
    const { scripts } = JSON.parse(readFileSync(here('package.json'), 'utf8'));
    expect(scripts).toHaveProperty([words[0] === 'run' ? words[1] : words[0]]);
  });

  const parts = commands.flatMap((command) => command.match(/^npm test (.+)$/)?.slice(1) ?? []);
  test('names parts of the tests', () => expect(parts.length).toBeGreaterThan(3));
  test.each(parts)('npm test %s: finds something to test', (part) => {
    expect(list(part).trim()).toMatch(part.includes(':') ? /^\w+: \S/ : /^\w+:/);
  });

  test.each([
    ['natve', 'no such part: natve'],
    ['js:nothing-like-it', "no test of js has 'nothing-like-it'"],
    ['wasm:gemm', 'wasm is one program'],
  ])('%s is refused: %s', (part, words) => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [here('scripts/test.mjs').pathname, '--list', part],
      { encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toContain(words);
  });
});

describe('tests that one Node alone runs', () => {
  const { testMatch } = config.projects.find(({ displayName }) => displayName === 'js-once');
  const names = testMatch.map((pattern) => pattern.split('/').at(-1));
  const folder = new URL('./', import.meta.url);

  test('are there', () => expect(readdirSync(folder)).toEqual(expect.arrayContaining(names)));

  test.each(names.filter((name) => name !== 'scripts.test.js'))('%s makes no engine', (name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    expect(text).not.toMatch(/from '(headwise|.*\/(child|configurations|known))(\.js)?'/);
  });
});
