// Tests, browser: a user's worker that has an engine of its own.
import { compute } from '/compute.js';

globalThis.onmessage = async ({ data }) => globalThis.postMessage(await compute(data));
