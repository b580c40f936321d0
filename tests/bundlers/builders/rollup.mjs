// Tests, bundlers: Rollup. It leaves `new URL('./file', import.meta.url)` as it is, so the worker becomes an entry of its own,
// beside the bundle and under its name, and the binaries are copied there.
import { cpSync } from 'node:fs';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { rollup } from 'rollup';

const bundle = await rollup({
  input: { main: 'main.js', worker: 'headwise/worker' },
  plugins: [nodeResolve()],
  onLog(level, log) {
    if (level !== 'warn') return;
    process.stderr.write(`${log.message}\n`);
    process.exitCode = 1;
  },
});
await bundle.write({ dir: 'out' });
for (const variant of ['simd', 'relaxed'])
  cpSync(
    `node_modules/headwise/dist/wasm/headwise-${variant}.wasm`,
    `out/headwise-${variant}.wasm`,
  );
