// Tests, browser: a server of files on 127.0.0.1, with or without the headers that isolate a page.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * Serves `mounts` (path prefix, ending in a slash → folder) and `pages` (path → HTML text) on a free port. `types`: extension →
 * MIME type, where another than the usual is wanted.
 * Resolves to { url, requests, close }: the address without a closing slash, the paths asked for so far, and the way to end it.
 */
export async function serve(
  mounts,
  { isolated = true, pages = {}, headers = {}, types = {} } = {},
) {
  const requests = [];
  const prefixes = Object.keys(mounts).sort((a, b) => b.length - a.length); // the longest that fits wins
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    requests.push(path);
    const common = { 'Cache-Control': 'no-store', ...(isolated ? ISOLATION : {}), ...headers };
    if (path in pages) {
      response.writeHead(200, { 'Content-Type': TYPES['.html'], ...common }).end(pages[path]);
      return;
    }
    const prefix = prefixes.find((candidate) => path.startsWith(candidate));
    const below = prefix === undefined ? '' : normalize(path.slice(prefix.length) || 'index.html');
    if (prefix === undefined || below.startsWith(`..${sep}`)) {
      response.writeHead(404, common).end();
      return;
    }
    try {
      const file = join(mounts[prefix], below);
      const bytes = await readFile(file);
      response
        .writeHead(200, {
          'Content-Type': { ...TYPES, ...types }[extname(file)] ?? 'application/octet-stream',
          ...common,
        })
        .end(bytes);
    } catch {
      response.writeHead(404, common).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}
