// Tests, bundlers: Vite. Nothing to set for headwise; what stands here is where the build goes and how it is served.
// `node vite.mjs build`, or `dev` or `preview` with `isolated` or `open`: the server prints its address.
import { build, createServer, preview } from 'vite';

const [command, headers] = process.argv.slice(2);

const serving = {
  host: '127.0.0.1',
  port: 0,
  headers:
    headers === 'isolated'
      ? {
          'Cross-Origin-Opener-Policy': 'same-origin',
          'Cross-Origin-Embedder-Policy': 'require-corp',
        }
      : {},
};

const config = {
  configFile: false,
  logLevel: 'warn',
  build: { outDir: 'out' },
  server: serving,
  preview: serving,
};

const print = (server) => process.stdout.write(`${server.resolvedUrls.local[0]}\n`);

if (command === 'build') await build(config);
else if (command === 'dev') print(await (await createServer(config)).listen());
else print(await preview(config));
