// Example logic, Node only: reads the stored numbers of real TensorFlow from tests/fixtures.
import { readFile } from 'node:fs/promises';

/**
 * @param {'documents' | 'keras'} name
 * @returns {Promise<{ versions: Record<string, string>, cases: import('./keras.mjs').StoredCase[] }>}
 */
export async function readFixture(name) {
  const url = new URL(`../../../tests/fixtures/${name}.json`, import.meta.url);
  return JSON.parse(await readFile(url, 'utf8'));
}
