// Scripts: `npm start` installs, builds and serves the demo page until it is interrupted.
import { main, step } from './lib/log.mjs';
import { buildPackage } from './lib/package.mjs';
import { at } from './lib/places.mjs';

await main(async () => {
  await buildPackage();
  step('serving the demo page; Ctrl+C ends it');
  const { createServer } = await import('vite');
  const isolation = {
    // Cross-origin isolation: what a page needs for shared memory, and so for threads.
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
  };
  const server = await createServer({
    root: at('web/demo'),
    server: { host: '127.0.0.1', port: Number(process.env.PORT) || 5173, headers: isolation },
  });
  await server.listen();
  server.printUrls();
});
