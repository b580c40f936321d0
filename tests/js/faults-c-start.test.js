// Tests: known faults of starting up (C4, C5, C13, C17): thread pools, missing features, concurrent starts.

import { availableParallelism } from 'node:os';
import { createEngine } from 'headwise';
import { runModule } from './child.js';
import { expectClose, expectSame } from './compare.js';
import { hasRelaxed } from './configurations.js';
import { numbers, rows, uniform } from './tricks.js';
import { betweenVariants, byHand } from './tolerances.js';

/** A script's part: one call whose answer is 3, and the start of a report. */
const oneCall = `
  const t = (x) => ({ data: Float32Array.from(x), shape: [1, 1, x.length, 1] });
  const { output } = await engine.attention(t([0]), t([0, 0]), t([2, 4]));
  const report = { value: output.data[0], info: engine.info };
`;

describe('C4, the thread pool', () => {
  const cores = availableParallelism();

  test.each([...new Set([1, 2, cores, cores + 1, 64])])(
    '%i threads answer at once, with no pause after the start',
    async (threads) => {
      const engine = await createEngine({ backend: 'wasm', threads });
      const { q, k, v } = uniform([2, 4]);
      expect(numbers(engine.attentionSync(q, k, v).output)).toEqual([3]);
      expect(numbers((await engine.attention(q, k, v)).output)).toEqual([3]);
      // A machine that cannot start 64 workers in time says so and goes on.
      const { threads: started, threadsReason } = engine.info;
      expect(started === threads || (threads > cores + 1 && /\w+ \w+/.test(threadsReason))).toBe(
        true,
      );
      engine.dispose();
    },
  );

  test.each([0, 65, 1.5, -1, NaN])('%d threads are refused', async (threads) => {
    await expect(createEngine({ threads })).rejects.toThrow(RangeError);
    await expect(createEngine({ threads })).rejects.toThrow(/threads/);
  });

  test('500 calls start no further workers, and the process ends by itself', async () => {
    const { started, after, value } = await runModule(`
      import workers from 'node:worker_threads';
      import { syncBuiltinESMExports } from 'node:module';
      let count = 0;
      workers.Worker = class extends workers.Worker {
        constructor(...args) { super(...args); count++; }
      };
      syncBuiltinESMExports();
      const { createEngine } = await import('headwise');
      const engine = await createEngine({ backend: 'wasm', threads: 3 });
      ${oneCall}
      const started = count;
      for (let i = 0; i < 250; i++) {
        engine.attentionSync(t([0]), t([0, 0]), t([2, 4]));
        await engine.attention(t([0]), t([0, 0]), t([2, 4]));
      }
      console.log(JSON.stringify({ ...report, started, after: count }));
    `);
    expect(value).toBe(3);
    expect(started).toBeGreaterThanOrEqual(2);
    expect(after).toBe(started);
  });

  test('an engine inside a Node worker, memory growing meanwhile', async () => {
    const report = await runModule(`
      import { Worker } from 'node:worker_threads';
      const worker = new Worker(\`
        (async () => {
          const { createEngine } = await import('headwise');
          const engine = await createEngine({ backend: 'wasm', threads: 4 });
          const t = (x) => ({ data: Float32Array.from(x), shape: [1, 1, x.length, 1] });
          const small = () => engine.attentionSync(t([0]), t([0, 0]), t([2, 4])).output.data[0];
          const values = [small()];
          const n = 10_000_000;
          const big = { data: new Float32Array(n), shape: [1, 1, n, 1] };
          values.push(engine.attentionSync(t([0]), big, { ...big, data: big.data.map((_, i) => i & 1) }).output.data[0]);
          values.push(small());
          (await import('node:worker_threads')).parentPort.postMessage({ values, threads: engine.info.threads });
          engine.dispose();
        })();
      \`, { eval: true });
      worker.on('message', (report) => console.log(JSON.stringify(report)));
      worker.on('error', (error) => { console.error(error); process.exit(1); });
    `);
    expect(report.threads).toBe(4);
    expectClose(report.values, [3, 0.5, 3], byHand);
  });
});

describe('C5, a platform without what threads need', () => {
  const stubs = {
    'no SharedArrayBuffer': { mustStart: true, stub: 'delete globalThis.SharedArrayBuffer;' },
    'shared memory refused': {
      mustStart: true,
      stub: `
      const Memory = WebAssembly.Memory;
      WebAssembly.Memory = function (descriptor) {
        if (descriptor.shared) throw new RangeError('stub: no shared memory');
        return new Memory(descriptor);
      };
      WebAssembly.Memory.prototype = Memory.prototype;`,
    },
    'memory over 1 GiB refused': {
      mustStart: true,
      stub: `
      const Memory = WebAssembly.Memory;
      WebAssembly.Memory = function (descriptor) {
        if (descriptor.maximum > 16384) throw new RangeError('stub: could not allocate memory');
        return new Memory(descriptor);
      };
      WebAssembly.Memory.prototype = Memory.prototype;`,
    },
    'workers that cannot be made': {
      stub: `
      import workers from 'node:worker_threads';
      import { syncBuiltinESMExports } from 'node:module';
      workers.Worker = class { constructor() { throw new Error('stub: no workers'); } };
      syncBuiltinESMExports();`,
    },
    'workers that never answer': {
      stub: `
      import workers from 'node:worker_threads';
      import { syncBuiltinESMExports } from 'node:module';
      import { EventEmitter } from 'node:events';
      workers.Worker = class extends EventEmitter {
        postMessage() {} ref() {} unref() {} terminate() { return Promise.resolve(0); }
      };
      syncBuiltinESMExports();`,
    },
  };

  test.each(Object.entries(stubs))(
    '%s: one thread with a reason and one warning, or a clear error',
    async (_name, { stub, mustStart = false }) => {
      const report = await runModule(
        `
        ${stub}
        const { createEngine } = await import('headwise');
        let warnings = [];
        console.warn = (...words) => warnings.push(words.join(' '));
        try {
          const engine = await createEngine({ backend: 'wasm', threads: 4 });
          ${oneCall}
          console.log(JSON.stringify({ ...report, warnings }));
          engine.dispose();
        } catch (error) {
          const { name, code, message } = error;
          console.log(JSON.stringify({ error: { name, code, message } }));
        }
        process.exit(0); // a stub may hold the process
      `,
        { timeout: 20_000 },
      );
      if (report.error && !mustStart) {
        expect(report.error).toMatchObject({ name: 'HeadwiseError', code: 'INIT_FAILED' });
        expect(report.error.message).toMatch(/thread|worker|memory|SharedArrayBuffer/i);
        return;
      }
      expect(report).toMatchObject({ value: 3 });
      if (report.info.threads === 4) return; // got round it
      expect(report.info.threads).toBe(1);
      expect(report.info.threadsReason).toMatch(/\w+ \w+/);
      expect(report.warnings).toHaveLength(1);
    },
    30_000,
  );
});

describe('C13, SIMD', () => {
  test('without it the start is refused in words', async () => {
    const { error } = await runModule(`
      WebAssembly.validate = () => false;
      const { createEngine } = await import('headwise');
      const error = await createEngine({ backend: 'wasm' }).then(() => null, (e) => e);
      const { name, code, message } = error ?? {};
      console.log(JSON.stringify({ error: { name, code, message } }));
    `);
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'UNSUPPORTED' });
    expect(error.message).toMatch(/SIMD/);
  });

  (hasRelaxed ? test : test.skip)('the two variants agree, and say which they are', async () => {
    const random = (shape, seed) => {
      const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
      let state = seed;
      for (let i = 0; i < data.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        data[i] = state / 2 ** 31 - 1;
      }
      return { data, shape };
    };
    const inputs = [1, 2, 3].map((seed) => random([2, 3, 70, 24], seed));
    const results = [];
    for (const variant of ['simd', 'relaxed']) {
      const engine = await createEngine({ backend: 'wasm', variant });
      expect(engine.info.variant).toBe(variant);
      results.push(engine.attentionSync(...inputs).output);
      engine.dispose();
    }
    expectClose(results[0], results[1], betweenVariants);
  });

  (hasRelaxed ? test.skip : test)(
    'relaxed is refused in words where the runtime lacks it',
    async () => {
      await expect(createEngine({ variant: 'relaxed' })).rejects.toMatchObject({
        code: 'UNSUPPORTED',
      });
      await expect(createEngine({ variant: 'relaxed' })).rejects.toThrow(/relaxed/i);
    },
  );
});

describe('C17, at the same time', () => {
  test('eight starts', async () => {
    const engines = await Promise.all(
      Array.from({ length: 8 }, () => createEngine({ backend: 'wasm', threads: 2 })),
    );
    const answers = await Promise.all(
      engines.map((engine, i) => {
        const { q, k, v } = uniform([i, i + 2]);
        return engine.attention(q, k, v);
      }),
    );
    expect(answers.map(({ output }) => output.data[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    engines.forEach((engine) => engine.dispose());
  });

  test('fifty calls give what they give one after the other', async () => {
    const engine = await createEngine({ backend: 'wasm', threads: 2 });
    const calls = Array.from({ length: 50 }, (_, i) => {
      const keys = 1 + ((i * 37) % 200);
      const k = rows(Array.from({ length: keys }, (_unused, j) => Math.sin(i + j)));
      const v = rows(Array.from({ length: keys }, (_unused, j) => i + j));
      return [rows([1, i / 50]), k, v, i % 3 === 0 ? { causal: true } : {}];
    });
    const alone = calls.map((call) => engine.attentionSync(...call).output);
    const together = await Promise.all(calls.map((call) => engine.attention(...call)));
    together.forEach(({ output }, i) => expectSame(output, alone[i], `call ${i}`));
    engine.dispose();
  });

  test('a start that failed can be tried again', async () => {
    const wasmUrl = new URL('nowhere/none.wasm', import.meta.url).href;
    const error = await createEngine({ backend: 'wasm', wasmUrl }).catch((e) => e);
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'INIT_FAILED' });
    expect(error.message).toContain('none.wasm');
    const engine = await createEngine({ backend: 'wasm' });
    const { q, k, v } = uniform([2, 4]);
    expect(numbers((await engine.attention(q, k, v)).output)).toEqual([3]);
    engine.dispose();
  });

  test('dispose while calls run: each ends, with a result or with DISPOSED', async () => {
    const engine = await createEngine({ backend: 'wasm', threads: 2 });
    const big = { data: new Float32Array(4 * 1024 * 32), shape: [1, 4, 1024, 32] };
    const calls = [engine.attention(big, big, big), engine.attention(big, big, big)];
    engine.dispose();
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'DISPOSED' });
      else expect(outcome.value.output.data).toHaveLength(big.data.length);
    }
    await expect(engine.attention(big, big, big)).rejects.toMatchObject({ code: 'DISPOSED' });
  });
});
