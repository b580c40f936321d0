// Bench: what steady rounds do not show: a fresh process's first calls, the start-up, and the heap of a long sequence.
import { performance } from 'node:perf_hooks';

import { longShape, shapes } from './shapes.mjs';
import { median } from './statistics.mjs';

const firstCallShape = shapes.find(({ name }) => name === '8×1024×1024×64');
const startShape = shapes.find(({ kind }) => kind === 'tiny');
const calls = 12;

/** Milliseconds of the first, second and tenth call, and of the steady one, each in a fresh process; medians over repeats. */
export async function firstCalls(hostKind, contender, threads, repeats) {
  const runs = await repeatFresh(hostKind, contender, threads, repeats, async (host) => {
    await host.call('prepare', { shape: firstCallShape });
    const times = await host.call('calls', { count: calls });
    const steady = (await host.call('time', { budgetMs: 500 })).ms;
    return { first: times[0], second: times[1], tenth: times[9], steady };
  });
  return medians(runs);
}

/** Milliseconds from the start of the process (or page) to the first result of the smallest shape. */
export async function startUp(hostKind, contender, threads, repeats) {
  const runs = [];
  for (let i = 0; i < repeats; i++) {
    const start = performance.now();
    const host = await hostKind.startHost(contender, threads);
    try {
      const created = performance.now();
      await host.call('prepare', { shape: startShape });
      await host.call('run');
      runs.push({ created: created - start, result: performance.now() - start, load: host.loadMs });
    } finally {
      await host.close();
    }
  }
  return medians(runs);
}

/** Bytes of the heap beyond inputs and outputs at their highest, and the milliseconds of the one call. */
export async function longMemory(hostKind, contender, threads) {
  const [run] = await repeatFresh(hostKind, contender, threads, 1, async (host) => {
    await host.call('prepare', { shape: longShape });
    const [ms] = await host.call('calls', { count: 1 });
    const { heapBytes, peakBytes } = await host.call('memory');
    const tensors = 4 * 4 * longShape.H * longShape.L * longShape.D; // q, k, v and output
    return { ms, heapBytes, peakBytes, beyondBytes: peakBytes - tensors };
  });
  return run;
}

async function repeatFresh(hostKind, contender, threads, repeats, measure) {
  const runs = [];
  for (let i = 0; i < repeats; i++) {
    const host = await hostKind.startHost(contender, threads);
    try {
      runs.push(await measure(host));
    } finally {
      await host.close();
    }
  }
  return runs;
}

function medians(runs) {
  return Object.fromEntries(
    Object.keys(runs[0]).map((key) => [key, median(runs.map((run) => run[key]))]),
  );
}

/** All of it, as far as the plan goes; a failure is a result with the message. */
export async function runCold({ host, contenders, threads, repeats, long, progress }) {
  const attempt = async (what, contender, count, measure) => {
    progress(`${what}, ${contender.label}, ${count} thread${count > 1 ? 's' : ''}`);
    const about = { id: contender.id, label: contender.label, threads: count };
    try {
      return { ...about, ...(await measure()) };
    } catch (error) {
      return { ...about, failure: error.message };
    }
  };
  const cold = {
    firstCallShape: firstCallShape.name,
    firstCalls: [],
    startUp: [],
    longShape: longShape.name,
    memory: [],
  };
  const chosen = contenders.filter(({ id }) =>
    ['headwise', 'ort-web-mha', 'tfjs', 'jax-js'].includes(id),
  );
  for (const count of threads) {
    for (const contender of chosen) {
      if (count > 1 && (!contender.threaded || contender.id === 'tfjs')) continue;
      const start = await attempt('start-up', contender, count, () =>
        startUp(host, contender, count, repeats),
      );
      cold.startUp.push(start);
      if (contender.id !== 'headwise' && contender.id !== 'ort-web-mha') continue;
      const first = await attempt('first calls', contender, count, () =>
        firstCalls(host, contender, count, repeats),
      );
      cold.firstCalls.push(first);
    }
  }
  const headwise = contenders.find(({ id }) => id === 'headwise');
  if (long && headwise) {
    const count = threads.at(-1);
    cold.memory.push(
      await attempt('heap of a long sequence', headwise, count, () =>
        longMemory(host, headwise, count),
      ),
    );
  }
  return cold;
}
