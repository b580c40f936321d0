// Bench: the process of one contender. Answers the parent's messages, one at a time (process.mjs).
import { makeStation } from '../measure.mjs';

const station = makeStation(
  (module) => import(new URL(`../contenders/${module}`, import.meta.url)),
  false,
);

process.on('message', async ({ id, method, args }) => {
  try {
    process.send({ id, result: await station[method](args) });
  } catch (error) {
    // Not every library throws Errors: a WebAssembly module may throw a number.
    const message = error instanceof Error ? error.message : String(error);
    process.send({
      id,
      error: { name: error?.name, message: message || 'it failed without a message' },
    });
  }
});
process.send({ ready: true });
