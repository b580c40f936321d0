// Tests, bundlers: esbuild. It leaves `new URL('./file', import.meta.url)` as it is, so the files named so become entries of their
// own, beside the bundle and under their names.
import { build } from 'esbuild';

const { warnings } = await build({
  entryPoints: {
    main: 'main.js',
    worker: 'headwise/worker',
    'headwise-simd': 'headwise/wasm/headwise-simd.wasm',
    'headwise-relaxed': 'headwise/wasm/headwise-relaxed.wasm',
  },
  loader: { '.wasm': 'copy' },
  bundle: true,
  minify: true,
  format: 'esm',
  outdir: 'out',
});
if (warnings.length > 0) process.exitCode = 1; // esbuild has printed them
