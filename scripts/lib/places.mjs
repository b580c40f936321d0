// Scripts: where things are.
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** What outlives a checkout: the toolchain, a newer Node for the tests. */
export const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'headwise');

/** Notes of what was built from what. */
export const stamps = join(root, 'build', 'stamps');

/** A path inside the checkout. */
export const at = (...parts) => join(root, ...parts);
