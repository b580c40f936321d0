// Bench: the measurement. For each thread count and shape: everyone's output is compared with headwise's, then rounds in
// which everyone is timed in turn, the order reversed every other round.
import { takesPart } from './contenders/index.mjs';
import { NotApplicable } from './contenders/not-applicable.mjs';
import { storedEntries } from './stored.mjs';

/** The largest difference that float32 attention of unit-scale inputs may show; sums of 4096 terms in another order. */
export const tolerance = 1e-4;

/**
 * @typedef {object} Entry one contender at one shape
 * @property {string} id
 * @property {string} label
 * @property {number} threads
 * @property {string} [about]
 * @property {number[]} times milliseconds of a call, one a round
 * @property {number} [maxDifference] from headwise's output
 * @property {{ flops: number, bytes: number }} work in a call
 * @property {number} [peakBytes] of a training: the most memory it held at a time
 * @property {boolean} [stored] not measured by this run
 * @property {string} [failure] what went wrong
 * @property {string} [notApplicable] why it does not take part
 */

/**
 * @param {object} plan
 * @param {object} plan.host hosts/process.mjs or hosts/page.mjs
 * @param {import('./contenders/index.mjs').Contender[]} plan.contenders
 * @param {import('./shapes.mjs').Shape[]} plan.shapes
 * @param {number[]} plan.threads
 * @param {number} plan.rounds
 * @param {number} plan.budgetMs of a contender in a round
 * @param {number} plan.slowestMs a contender whose call takes longer is not measured again and again
 * @param {(text: string) => void} plan.progress
 * @param {(result: { shape: import('./shapes.mjs').Shape, threads: number, entries: Entry[] }) => void} plan.done
 */
export async function runSuite(plan) {
  for (const threads of plan.threads) {
    const lineUp = lineUpOf(plan.contenders, threads);
    const hosts = new Map();
    try {
      for (const shape of plan.shapes) {
        plan.progress(`${shape.name}, ${threads} thread${threads > 1 ? 's' : ''}`);
        plan.done({ shape, threads, entries: await measureShape(plan, shape, lineUp, hosts) });
      }
    } finally {
      for (const host of hosts.values()) await host.close?.();
    }
  }
}

// Beside those with all threads, headwise with one, for how much the others bring.
function lineUpOf(contenders, threads) {
  const lineUp = contenders
    .filter(({ threaded }) => threaded || threads === 1)
    .map((contender) => ({ contender, threads }));
  const headwise = contenders.find(({ id }) => id === 'headwise');
  if (threads > 1 && headwise) lineUp.splice(1, 0, { contender: headwise, threads: 1 });
  return lineUp;
}

async function measureShape(plan, shape, lineUp, hosts) {
  const entries = [];
  const running = [];
  let expected;
  for (const { contender, threads } of lineUp) {
    if (!takesPart(contender, shape)) continue;
    const entry = { id: contender.id, label: contender.label, threads, times: [], work: shape };
    entries.push(entry);
    try {
      const host = await hostOf(plan.host, contender, threads, hosts);
      entry.about = host.about;
      const { flops, bytes } = host.work ?? shape;
      entry.work = { flops, bytes: bytes * (contender.cells ?? 1) };
      await host.call('prepare', { shape });
      const [firstMs] = await host.call('calls', { count: 1 });
      const output = await host.read();
      if (output !== null) {
        expected ??= output;
        entry.maxDifference = maxDifference(output, expected);
        if (!(entry.maxDifference <= (contender.tolerance ?? tolerance)))
          throw new Error(`its output is off by ${entry.maxDifference}`);
      }
      // JavaScript engines optimise while the code runs: the first time does not count. One that takes seconds has had its
      // chance within the call.
      const slow =
        firstMs > plan.slowestMs ||
        (await host.call('time', { budgetMs: plan.budgetMs })).ms > plan.slowestMs;
      running.push({ entry, host, rounds: slow ? 1 : plan.rounds });
    } catch (error) {
      fail(entry, error);
    }
  }
  for (let round = 0; round < plan.rounds; round++) {
    const inTurn = round % 2 === 0 ? running : [...running].reverse();
    for (const { entry, host, rounds } of inTurn) {
      if (round >= rounds || entry.failure) continue;
      try {
        entry.times.push((await host.call('time', { budgetMs: plan.budgetMs })).ms);
      } catch (error) {
        fail(entry, error);
      }
    }
  }
  if (shape.kind === 'training') {
    for (const { entry, host } of running)
      if (!entry.failure) entry.peakBytes = (await host.call('memory')).peakBytes;
  }
  for (const host of hosts.values()) await host.call?.('release').catch(() => {});
  const { threads } = lineUp[0];
  return [...entries, ...storedEntries(shape, threads)];
}

// One that could not start will not be tried for every shape; one that died is started anew.
async function hostOf(kind, contender, threads, hosts) {
  const key = `${contender.id} ${threads}`;
  const known = hosts.get(key);
  if (known?.startFailure) throw known.startFailure;
  if (known && !known.ended()) return known;
  try {
    const host = await kind.startHost(contender, threads);
    hosts.set(key, host);
    return host;
  } catch (error) {
    hosts.set(key, { startFailure: error });
    throw error;
  }
}

function fail(entry, error) {
  entry.times = [];
  if (error instanceof NotApplicable) entry.notApplicable = error.message;
  else entry.failure = error.message;
}

function maxDifference(a, b) {
  if (a.length !== b.length) return NaN;
  let max = 0;
  // Written so that NaN is kept.
  for (let i = 0; i < a.length; i++)
    if (!(Math.abs(a[i] - b[i]) <= max)) max = Math.abs(a[i] - b[i]);
  return max;
}
