// Tests, bundlers: the packed package's declarations under TypeScript 5.6, the oldest that is promised: every file of them is looked
// at (skipLibCheck is off), and a caller's code compiles. tests/js/package.test.js does the same with the checkout's TypeScript.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pack } from './support/packed.js';

const require = createRequire(import.meta.url);
const tsc = require.resolve('typescript/bin/tsc');

const caller = `
  import { createEngine, tensor, type Engine } from 'headwise';
  import { attention } from 'headwise/onnx';
  export async function use(): Promise<Uint8Array> {
    const engine: Engine = await createEngine();
    const x = tensor([[1, 2], [3, 4]]);
    const { output } = await engine.attention(x, x, x, { causal: true });
    const { Y } = await attention(engine, { Q: x, K: x, V: x }, {}, { outputs: ['Y'] });
    const model = engine.transformer({ kind: 'decoder', targetVocabulary: Y.dims[0] ?? 5, embedDim: 8, numHeads: 2 });
    return output.data.length > 0 ? model.save() : new Uint8Array(0);
  }
`;

let packed;
let project;
beforeAll(async () => {
  packed = await pack();
  project = await packed.project('types');
  writeFileSync(join(project, 'caller.ts'), caller);
});
afterAll(() => packed?.remove());

test('is TypeScript 5.6', () => {
  expect(require('typescript').version).toMatch(/^5\.6\./u);
});

test.each([
  ['bundler', 'esnext'],
  ['node16', 'node16'],
])('declarations hold with moduleResolution %s', (resolution, module) => {
  const flags = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022'];
  flags.push('--lib', 'es2022,dom', '--moduleResolution', resolution);
  const { status, stdout } = spawnSync(
    process.execPath,
    [tsc, ...flags, '--module', module, 'caller.ts'],
    { cwd: project, encoding: 'utf8' },
  );
  expect(stdout).toBe('');
  expect(status).toBe(0);
});
