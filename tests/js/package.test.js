// Tests: the package as npm packs it: it holds what it names, its import does nothing, its types are found (C7).

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, runModule, runProcess } from './child.js';

const { exports, files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

describe('npm pack', () => {
  let packed;
  beforeAll(async () => {
    const { status, stdout, stderr } = await runProcess('npm', ['pack', '--dry-run', '--json']);
    if (status !== 0) throw new Error(stderr);
    packed = JSON.parse(stdout)[0].files.map(({ path }) => path);
  });

  const targets = Object.values(exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );

  test.each(targets)('has %s, which `exports` names', (target) => {
    const path = target.replace(/^\.\//u, '');
    if (!path.includes('*')) expect(packed).toContain(path);
    else
      expect(
        packed.filter((name) => name.startsWith(path.replace('*', ''))).length,
      ).toBeGreaterThan(0);
  });

  test.each(files)('has %s, which `files` names, whole', (name) => {
    const whole = statSync(join(root, name)).isDirectory()
      ? readdirSync(join(root, name), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      : [name];
    expect(whole.length).toBeGreaterThan(0);
    expect(packed).toEqual(expect.arrayContaining(whole));
  });

  test('has both builds, the licence and the read-me, and nothing of the sources', () => {
    for (const variant of ['simd', 'relaxed'])
      for (const extension of ['mjs', 'wasm'])
        expect(packed).toContain(`dist/wasm/headwise-${variant}.${extension}`);
    expect(packed).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
    expect(packed.filter((name) => /^(cpp|web|tests|scripts|build)\//u.test(name))).toEqual([]);
  });
});

test.each([
  "await import('headwise')",
  "createRequire(import.meta.url)('headwise')",
  "{ ...(await import('headwise')), ...(await import('headwise/onnx')) }",
])('%s does nothing observable', async (load) => {
  // require() of a module is Node's since 20.19 and 22.12.
  const report = await runModule(`
      import { createRequire, syncBuiltinESMExports } from 'node:module';
      import workers from 'node:worker_threads';
      const done = [];
      const forbidden = (name) => function () { done.push(name); throw new Error(name); };
      globalThis.fetch = forbidden('fetch');
      globalThis.Worker = forbidden('Worker');
      workers.Worker = forbidden('a Node worker');
      syncBuiltinESMExports();
      for (const name of ['Memory', 'Module', 'Instance']) WebAssembly[name] = forbidden(name);
      for (const name of ['compile', 'instantiate', 'validate']) WebAssembly[name] = forbidden(name);
      const globals = () => Reflect.ownKeys(globalThis).map(String).sort().join();
      const before = globals();
      const { createEngine } = ${load};
      console.log(JSON.stringify({ type: typeof createEngine, done, globals: globals() === before }));
    `);
  expect(report).toMatchObject({ type: 'function', done: [], globals: true });
});

describe('types', () => {
  const consumer = `
    import { createEngine, tensor, HeadwiseError, type AttentionOptions, type Engine, type Tensor } from 'headwise';
    import { attention, rmsNormalization, type AttentionAttributes, type OnnxTensor } from 'headwise/onnx';

    export async function use(signal: AbortSignal): Promise<Float32Array> {
      const engine: Engine = await createEngine({ threads: 2, variant: 'auto', signal });
      const x: Tensor = tensor([[1, 2], [3, 4]]);
      const options: AttentionOptions = { causal: true, returnWeights: true };
      const { output, weights } = await engine.attention(x, x, x, options);
      const reason: string | undefined = engine.info.threadsReason;
      const known = (...of: unknown[]): boolean => of[0] instanceof HeadwiseError && reason === undefined;
      const mha = engine.multiHeadAttention({ embedDim: 2, numHeads: 1 });
      await mha.forward(x);
      const asked = await engine.attention(x, x, x, { returnWeights: true, returnLogSumExp: true });
      const [row, sum]: [number, Float32Array] = [asked.weights.shape.length, asked.logSumExp.data];
      // @ts-expect-error -- scores were not asked for
      known(row, sum, asked.scores.shape);
      known(engine.attentionSync(x, x, x, { returnScores: 'raw', causal: true }).scores.shape);
      const mine = mha.forwardSync(x, x, x, { averageWeights: true }).weights.toArray();
      known(mine, (await mha.forward(x, x, x, { returnWeights: { heads: [0] } })).weights.shape);
      // @ts-expect-error -- options of an unknown kind may ask for nothing
      known((await engine.attention(x, x, x, options)).logSumExp.shape);
      // @ts-expect-error -- no such option, beside one that is
      await engine.attention(x, x, x, { causal: true, returnWeigths: true });
      // @ts-expect-error -- no such option
      await engine.attention(x, x, x, { casual: true });
      // @ts-expect-error -- a number is not a tensor
      await engine.attention(1, x, x);
      const attributes: AttentionAttributes = { is_causal: 1, q_num_heads: 1, kv_num_heads: 1 };
      const ids = { type: 'int64', data: new BigInt64Array([1n]), dims: [1] };
      const { Y, present_key } = await attention(engine, { Q: x, K: x, V: x, nonpad_kv_seqlen: ids }, attributes, { outputs: ['Y'] });
      const cache: OnnxTensor | undefined = present_key;
      rmsNormalization({ X: Y, scale: cache ?? Y });
      // @ts-expect-error -- no such output
      await attention(engine, { Q: x, K: x, V: x }, {}, { outputs: ['present'] });
      known(weights?.shape);
      engine.dispose();
      return output.data;
    }
  `;
  let folder;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'headwise-types-'));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules', 'headwise'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'consumer.ts'), consumer);
    writeFileSync(join(folder, 'common.cts'), `export const load = () => import('headwise');`);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each([
    ['bundler', 'esnext', ['consumer.ts']],
    ['node16', 'node16', ['consumer.ts', 'common.cts']],
    ['nodenext', 'nodenext', ['consumer.ts', 'common.cts']],
  ])(
    'are found with moduleResolution %s, and hold without skipLibCheck',
    async (resolution, module, sources) => {
      const tsc = join(root, 'node_modules/typescript/bin/tsc');
      expect(existsSync(tsc)).toBe(true);
      const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022'];
      options.push('--lib', 'es2022,dom', '--moduleResolution', resolution, '--module', module);
      const { status, stdout } = await runProcess(process.execPath, [tsc, ...options, ...sources], {
        cwd: folder,
      });
      expect(stdout).toBe('');
      expect(status).toBe(0);
    },
  );
});
