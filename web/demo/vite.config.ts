// Demo: how the page is served and built. The two isolation headers give WebAssembly its threads; a server that leaves them out
// still serves a working page with one thread, which says so.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

export default defineConfig({
  root: here('.'),
  // Relative addresses: the built page may lie in any folder of a server.
  base: './',
  // The page uses the package as its users get it.
  resolve: { alias: { headwise: here('../../dist/index.js') } },
  server: { host: '127.0.0.1', headers: isolation, fs: { allow: [here('../..')] } },
  preview: { host: '127.0.0.1', headers: isolation },
  worker: { format: 'es' },
  build: {
    outDir: here('../../build/demo'),
    emptyOutDir: true,
    target: 'es2022',
    // The stored numbers stay files of their own, fetched when wanted.
    assetsInlineLimit: 0,
  },
});
