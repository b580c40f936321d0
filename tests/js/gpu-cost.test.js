// Tests: the cost model: measured by a clock and a device of our own, kept, and read back only when it is whole.

import { estimate, gpuWins } from '../../dist/backend/cost-model.js';
import { keepCosts, keyOf, readCosts } from '../../dist/webgpu/cost-store.js';
import { measureCosts } from '../../dist/webgpu/measure.js';

const truth = {
  gpuCallMs: 2,
  uploadBytesPerMs: 3e5,
  downloadBytesPerMs: 1e5,
  gpuWorkPerMs: 5e6,
  cpuCallMs: 0.05,
  cpuWorkPerMs: 2e5,
};

/** Both sides, which need just as long as `truth` says by a clock that only they move; `disturb` may interfere. */
function machine(disturb = () => undefined) {
  let now = 0;
  const traffic = { calls: 0, running: 0 };
  let pauses = 0;
  const work = ({ heads, queries, keys, headDim, valueDim }) =>
    heads * queries * keys * (headDim + valueDim);
  const take = async (ms) => {
    now += ms;
    disturb(traffic, (more) => (now += more));
    return {};
  };
  return {
    traffic,
    pauses: () => pauses,
    clock: {
      now: () => now,
      pause: async (ms) => {
        now += ms;
        pauses++;
        traffic.running = 0;
      },
    },
    core: { run: (request) => take(truth.cpuCallMs + work(request) / truth.cpuWorkPerMs) },
    gpu: {
      run: (request) => take(truth.gpuCallMs + work(request) / truth.gpuWorkPerMs),
      device: {
        upload: async ({ byteLength }) => {
          await take(byteLength / truth.uploadBytesPerMs);
          return {
            download: () => take(truth.gpuCallMs + byteLength / truth.downloadBytesPerMs),
            dispose: () => undefined,
          };
        },
      },
    },
  };
}

function expectTruth(costs) {
  for (const [name, value] of Object.entries(truth)) {
    expect(costs[name] / value).toBeGreaterThan(0.95);
    expect(costs[name] / value).toBeLessThan(1.05);
  }
}

test('it finds what the machine does', async () => {
  const { gpu, core, traffic, clock } = machine();
  expectTruth(await measureCosts(gpu, core, traffic, clock));
});

test("the caller's calls are waited for, and what they delay is measured again", async () => {
  let turn = 0;
  const { gpu, core, traffic, clock, pauses } = machine((calls, delay) => {
    turn++;
    if (turn % 3 === 1) {
      calls.calls++;
      delay(500);
    }
    if (turn % 7 === 0) calls.running = 1;
  });
  expectTruth(await measureCosts(gpu, core, traffic, clock));
  expect(pauses()).toBeGreaterThan(0);
});

test('who never pauses is measured all the same', async () => {
  const { gpu, core, traffic, clock } = machine((calls) => calls.calls++);
  expectTruth(await measureCosts(gpu, core, traffic, clock));
});

test('kept costs are those that were kept; a damaged entry is none', () => {
  const entries = new Map();
  const storage = {
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value) => entries.set(key, value),
  };
  const key = keyOf('a card', { threads: 2, variant: 'relaxed' });
  expect(key).not.toBe(keyOf('another card', { threads: 2, variant: 'relaxed' }));
  expect(key).not.toBe(keyOf('a card', { threads: 1, variant: 'relaxed' }));
  expect(readCosts(storage, key)).toBeUndefined();
  keepCosts(storage, key, truth);
  expect(readCosts(storage, key)).toEqual(truth);
  const damaged = ['', '{', 'null', '7', '[]', JSON.stringify({ ...truth, gpuCallMs: undefined })];
  for (const wrong of [0, -1, '2', null])
    damaged.push(JSON.stringify({ ...truth, cpuCallMs: wrong }));
  for (const text of damaged) {
    entries.set(key, text);
    expect(readCosts(storage, key)).toBeUndefined();
  }
  const forbidden = {
    getItem() {
      throw new Error('no storage here');
    },
    setItem() {
      throw new Error('full');
    },
  };
  expect(readCosts(forbidden, key)).toBeUndefined();
  expect(() => keepCosts(forbidden, key, truth)).not.toThrow();
});

test('the GPU has to win clearly, its transfers counted', () => {
  const request = (length) => ({
    op: 'attention',
    ...{ batch: 1, heads: 8, queries: length, keys: length, headDim: 64, valueDim: 64 },
    ...{ scoreStage: 0, q: new Float32Array(8), k: new Float32Array(8), v: new Float32Array(8) },
  });
  expect(gpuWins(estimate(request(8), truth))).toBe(false);
  expect(gpuWins(estimate(request(512), truth))).toBe(true);
  expect(gpuWins({ gpuMs: 1, cpuMs: 1.1 })).toBe(false);
});
