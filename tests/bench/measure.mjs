// Bench: one contender's side of the work, the same in a child process and in a page: it makes the contender, prepares it
// for a shape, runs it and times it.
import { inputsOf } from './inputs.mjs';

const isPromise = (value) =>
  value !== null && typeof value === 'object' && typeof value.then === 'function';

/**
 * Times calls until `budgetMs` have passed, one at least.
 * Quick calls are timed in batches of at least `batchMs`, because clocks are coarse: 5 µs in an isolated page.
 * @returns {Promise<{ ms: number, calls: number }>} the median of a call's milliseconds over the batches
 */
async function timeCalls(run, budgetMs, batchMs = 1) {
  const samples = [];
  let batch = 1;
  let calls = 0;
  const start = performance.now();
  for (;;) {
    const before = performance.now();
    for (let i = 0; i < batch; i++) {
      const result = run();
      // Awaiting costs as much as a tiny call, and a user of a synchronous function does not.
      if (isPromise(result)) await result;
    }
    const now = performance.now();
    calls += batch;
    if (now - before < batchMs && now - start < budgetMs) {
      batch *= 2; // not yet a sample
      continue;
    }
    samples.push((now - before) / batch);
    if (now - start >= budgetMs) break;
  }
  samples.sort((a, b) => a - b);
  const middle = samples.length >> 1;
  const ms =
    samples.length % 2 === 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return { ms, calls };
}

/**
 * @param {(module: string) => Promise<{ create: Function }>} load imports a contender's module
 * @param {boolean} inPage
 */
export function makeStation(load, inPage) {
  let contender;
  return {
    /** Makes the contender. @returns {Promise<{ about: string, work?: object }>} work: a ceiling's, in one run */
    async create({ module, options }) {
      const { create } = await load(module);
      contender = await create({ ...options, inPage });
      return { about: contender.about, work: contender.work };
    },
    /** Prepares for a shape and forgets the last one. */
    async prepare({ shape }) {
      await contender.release();
      await contender.prepare(shape, inputsOf(shape));
    },
    async run() {
      await contender.run();
    },
    /** The last run's output; null for a ceiling. */
    read: () => contender.read(),
    time: ({ budgetMs }) => timeCalls(() => contender.run(), budgetMs),
    /** Milliseconds of each of the next `count` calls. */
    async calls({ count }) {
      const times = [];
      for (let i = 0; i < count; i++) {
        const before = performance.now();
        await contender.run();
        times.push(performance.now() - before);
      }
      return times;
    },
    memory: () => contender.memory(),
    release: () => contender.release(),
  };
}
