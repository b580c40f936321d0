// Wasm: fetches the binary, from the network or from disk, whatever MIME type it is served with.
import { initFailed } from '../errors.js';
import { nodeModule } from './node.js';

/** The file's bytes. Rejects with INIT_FAILED and the URL in the message. */
export async function readBytes(url: URL, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (url.protocol === 'file:') {
    const fs = (await nodeModule('fs/promises')) as
      { readFile(url: URL): Promise<Uint8Array> } | undefined;
    if (fs !== undefined) {
      try {
        return await fs.readFile(url);
      } catch (error) {
        throw initFailed(`cannot read ${url.href}: ${messageOf(error)}`, error);
      }
    }
  }
  let response: globalThis.Response;
  try {
    response = await fetch(url, {
      credentials: 'same-origin',
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    throw initFailed(`cannot fetch ${url.href}: ${messageOf(error)}`, error);
  }
  if (!response.ok) throw initFailed(`cannot fetch ${url.href}: HTTP status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A URL from what the user gave: absolute, relative to the page, or in Node a path. */
export async function resolveUrl(given: string | URL): Promise<URL> {
  const text = String(given);
  const isWindowsPath = /^[a-zA-Z]:[\\/]/.test(text);
  if (!isWindowsPath) {
    const base = (globalThis as { location?: { href?: string } }).location?.href;
    try {
      return new URL(text, base?.startsWith('blob:') ? undefined : base);
    } catch {
      // A path, then.
    }
  }
  const url = (await nodeModule('url')) as { pathToFileURL(path: string): URL } | undefined;
  if (url === undefined) throw initFailed(`${JSON.stringify(text)} is not a URL`);
  return url.pathToFileURL(text);
}
