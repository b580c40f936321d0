// Tests: arguments that lose or change their memory while they are read. Whatever call, whatever array, at whatever moment: the
// numbers are those of the arguments as they were, or there is a typed error; never what an earlier call left in the heap.

import fc from 'fast-check';
import { createEngine } from 'headwise';
import { readingCalls } from './support/reading-calls.js';
import { arraysOf, detach, positionsOf, resizable, trap } from './support/traps.js';
import { expectWorks } from './support/known.js';

// What an earlier call leaves behind.
const poison = { data: new Float32Array(4096).fill(54_321), shape: [64, 64] };

const acts = {
  detach,
  empty: ({ buffer }) => buffer.resize(0),
  halve: ({ buffer }) => buffer.resize(buffer.byteLength / 2),
  double: ({ buffer }) => buffer.resize(buffer.byteLength * 2),
};

const moments = fc.record({
  size: fc.constantFrom(2, 8),
  seed: fc.nat(1000),
  memory: fc.constantFrom('plain', 'resizable', 'tracking'),
  act: fc.constantFrom(...Object.keys(acts)),
  victim: fc.nat(1000),
  position: fc.nat(1000),
});

describe.each([false, true])('an engine in a worker: %p', (offMainThread) => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread });
  });
  afterAll(() => engine.dispose());

  const names = Object.keys(readingCalls).filter(
    (name) => !offMainThread || readingCalls[name].isSync !== true,
  );

  test.each(names)('%s: the numbers of one moment, or a typed error', async (name) => {
    const { make, run } = readingCalls[name];
    let [errors, results] = [0, 0];
    const property = async ({ size, seed, memory, act, victim, position }) => {
      const expected = await run(engine, make(size, seed));
      const args = make(size, seed);
      const arrays = arraysOf(args);
      const [owner, key] = arrays[victim % arrays.length];
      if (memory !== 'plain') owner[key] = resizable(owner[key], memory === 'tracking');
      const array = owner[key];
      const positions = positionsOf(args);
      trap(positions[position % positions.length], () =>
        (memory === 'plain' ? detach : acts[act])(array),
      );
      const { inUseBytes } = await engine.memory();
      await engine.linear(poison, poison);
      let got;
      try {
        got = await run(engine, args);
      } catch (error) {
        if (error.matcherResult !== undefined) throw error;
        expect(['INVALID_VALUE', 'INVALID_SHAPE']).toContain(error.code);
        expect(error).toBeInstanceOf(RangeError);
        expect(error.message).toMatch(/^[\w.[\]() ]+: /);
        expect((await engine.memory()).inUseBytes).toBe(inUseBytes);
        errors++;
        return;
      }
      expect(got).toEqual(expected);
      results++;
    };
    await fc.assert(fc.asyncProperty(moments, property), { numRuns: 120, seed: 13 });
    // The draw must reach both sides, or it tests nothing.
    expect(errors).toBeGreaterThan(5);
    expect(results).toBeGreaterThan(5);
    await expectWorks(engine);
  });

  test('a shape that is another at its second reading is what it was at the first', async () => {
    const { make, run } = readingCalls.attentionBackward;
    const expected = await run(engine, make(8, 1));
    const args = make(8, 1);
    const { data, shape } = args[1];
    const shapes = [shape, [1, 2, 4, 8]];
    args[1] = {
      data,
      get shape() {
        return shapes.shift();
      },
    };
    const { dq } = await engine.attentionBackward(...args);
    expect(dq.shape).toEqual(shape);
    expect([...dq.data]).toEqual(expected.slice(0, data.length));
    expect(shapes).toHaveLength(1);
  });
});
