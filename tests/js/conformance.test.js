// Tests: other projects' cases for their attention operators and layers, read from outside the repository. Every case is
// either run or a quirk of its project, which the summary names with the reason.

import { createEngine } from 'headwise';
import { attends, expectAgreement } from './conformance/agree.js';
import { operatorOf, runCase } from './conformance/operators.js';
import { conformanceFolder, readCases } from './conformance/read.js';
import { onGpuFloat32, otherFloat32 } from './tolerances.js';

// The project 'webgpu' runs these cases once more, those that attend, on the GPU.
const onGpu = process.env.HEADWISE_BACKEND === 'webgpu';

const folder = conformanceFolder();

if (!folder) {
  test.skip('conformance: no cases here; HEADWISE_CONFORMANCE names their folder', () => {});
  process.stderr.write(
    'conformance skipped: set HEADWISE_CONFORMANCE to the folder of the cases\n',
  );
} else {
  const cases = readCases(folder).filter((c) => !onGpu || attends(c));
  const reasonOf = ({ quirk }) => quirk;
  const covered = cases.filter((c) => reasonOf(c) === undefined);
  const left = cases.filter((c) => reasonOf(c) !== undefined);
  let engine;
  let ran = 0;
  let ranOnGpu = 0;

  beforeAll(async () => {
    engine = await createEngine(
      onGpu ? { backend: 'webgpu', threads: 1 } : { backend: 'wasm', threads: 2 },
    );
  });

  afterAll(() => {
    engine.dispose();
    const reasons = groupBy(left, reasonOf);
    const lines = [...reasons].map(
      ([reason, list]) =>
        `  ${list.length} not run: ${reason}\n    ${list.map((c) => c.name).join(' ')}`,
    );
    process.stderr.write(
      `conformance: ${ran} of ${covered.length} cases agree, of ${cases.length} in all\n${lines.join('\n')}\n`,
    );
  });

  test('there are cases, and none is of an unknown kind', () => {
    expect(covered.length).toBeGreaterThan(0);
    const unknown = covered.filter((c) => !operatorOf(c));
    expect(unknown.map(({ name, op }) => `${name}: ${op}`)).toEqual([]);
  });

  test.each(covered)('$name', async (conformance) => {
    const results = await runCase(engine, conformance);
    if (engine.lastCall?.side === 'webgpu') ranOnGpu++;
    expectAgreement(results, conformance, onGpu ? onGpuFloat32 : otherFloat32);
    ran++;
  });

  // What was meant for the GPU, and not the core in its place.
  if (onGpu) {
    test('the GPU computed them', () => {
      expect(ranOnGpu).toBeGreaterThan(0.9 * covered.length);
    });
  }
}

/** As Map.groupBy, which Node 20 lacks. */
function groupBy(list, keyOf) {
  const groups = new Map();
  for (const item of list) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
