// Tests: the configurations over which one test body runs: variant, threads, with and without weights, sync and async.
// `onEveryConfiguration` is where to start reading.

import { createEngine } from 'headwise';
import { expectSame } from './compare.js';

// () => i8x16.relaxed_swizzle(i8x16.splat(1), i8x16.splat(2)): valid only where relaxed SIMD is. Not the package's own
// probe, which is under test.
const relaxedSwizzle = new Uint8Array([
  ...[0, 97, 115, 109, 1, 0, 0, 0], // magic, version
  ...[1, 5, 1, 96, 0, 1, 123], // type: () -> v128
  ...[3, 2, 1, 0], // one function of it
  ...[10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11], // code
]);

export const hasRelaxed = WebAssembly.validate(relaxedSwizzle);
export const variants = hasRelaxed ? ['simd', 'relaxed'] : ['simd'];
if (!hasRelaxed) {
  process.stderr.write(
    `no relaxed SIMD in Node ${process.version}: variant 'relaxed' not tested\n`,
  );
}

const product = (...lists) =>
  lists.reduce((rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]]);

// The project 'webgpu' runs these same bodies with the GPU in the core's place (tests/webgpu/support/setup.js).
const onGpu = process.env.HEADWISE_BACKEND === 'webgpu';

/** `{ name, backend, variant, threads }` for every engine that this runtime can have. */
export const engineConfigurations = onGpu
  ? [{ name: 'webgpu', backend: 'webgpu', variant: 'simd', threads: 1 }]
  : product(variants, [1, 2, 4]).map(([variant, threads]) => ({
      name: `${variant}, ${threads} thread${threads > 1 ? 's' : ''}`,
      backend: 'wasm',
      variant,
      threads,
    }));

/** The same, times with and without returned weights, times sync and async. */
export const callConfigurations = product(
  engineConfigurations,
  [false, true],
  onGpu ? [false] : [false, true],
).map(([engine, withWeights, sync]) => ({
  ...engine,
  name: `${engine.name}, ${withWeights ? 'weights' : 'no weights'}, ${sync ? 'sync' : 'async'}`,
  withWeights,
  sync,
}));

const engines = new Map();

/** The engine of a configuration, one for the whole test file; what was asked for must be what one gets. */
export async function engineOf({ backend, variant, threads }) {
  const key = `${variant} ${threads}`;
  if (!engines.has(key)) {
    engines.set(key, createEngine({ backend, variant, threads }));
  }
  const engine = await engines.get(key);
  expect(engine.info).toMatchObject({ backend, variant, threads });
  return engine;
}

afterAll(async () => {
  for (const engine of engines.values()) (await engine).dispose();
});

// Outputs of the first configuration of each variant, by test and call: API.md promises the same bits for any thread
// count, from run to run, and whatever else is asked for.
const firstOutputs = new Map();

/**
 * Describes `title` once for each configuration. `body(attention, configuration)` defines its tests with
 * `attention(q, k, v, options)`, which always resolves to `{ output, weights?, … }`, or rejects. Every call's output is
 * also compared, bit for bit, with what the same call gave in the first configuration of the same variant.
 */
export function onEveryConfiguration(title, body) {
  describe.each(callConfigurations)(`${title} [$name]`, (configuration) => {
    let engine;
    let calls;
    beforeAll(async () => {
      engine = await engineOf(configuration);
    });
    beforeEach(() => {
      calls = 0;
    });

    const attention = async (q, k, v, options = {}) => {
      const all = { ...(configuration.withWeights && { returnWeights: true }), ...options };
      const result = configuration.sync
        ? engine.attentionSync(q, k, v, all)
        : await engine.attention(q, k, v, all);
      expect(result.weights !== undefined).toBe(Boolean(all.returnWeights));
      const test = expect.getState().currentTestName.replace(`[${configuration.name}]`, '');
      const key = `${configuration.variant} ${test} ${calls++}`;
      if (!firstOutputs.has(key)) firstOutputs.set(key, result.output.data.slice());
      expectSame(result.output, firstOutputs.get(key), 'bits of the output');
      return result;
    };
    body(attention, configuration);
  });
}
