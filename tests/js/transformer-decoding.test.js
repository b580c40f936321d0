// Tests: a target read token by token through the package: the logits and tokens of whole passes, beams, memory, what it refuses.

import { createEngine } from 'headwise';
import { expectClose } from './compare.js';
import { decoderOnly, deeper, shaken, tensor } from './support/transformer.js';
import { decoded } from './tolerances.js';

let engine;
beforeAll(async () => {
  engine = await createEngine({ threads: 2 });
});
afterAll(() => engine.dispose());

describe.each([
  ['decoder', decoderOnly, undefined],
  ['encoder-decoder', deeper, { source: [[1, 4, 2, 3]], sourceMask: [[true, true, false, true]] }],
])('%s: read token by token', (_, config, source) => {
  const options = ['sinusoidal', 'learned', 'none', 'rotary'].flatMap((positions) =>
    [true, false].map((normFirst) => [positions, normFirst]),
  );
  test.each(options)(
    'positions %s, normFirst %s: the logits and tokens of whole passes',
    async (positions, normFirst) => {
      const numKvHeads = positions === 'rotary' ? 1 : 2;
      const model = await shaken(engine, { ...config, positions, normFirst, numKvHeads });
      const whole = async (target) => {
        const { data, shape } = await model.forward({ ...source, target: [target] });
        return data.slice((shape[1] - 1) * shape[2]);
      };
      const decoding = model.decoding(source);
      const target = [];
      for (const tokens of [[0, 3, 1], [2], [5], [1, 4]]) {
        target.push(...tokens);
        const logits = await decoding.read([tokens]);
        expect(logits.shape).toEqual([1, 7]);
        expectClose(logits, await whole(target), decoded);
      }
      expect(decoding.length).toBe(7);
      decoding.dispose();
      const greedy = [0, 3];
      for (let i = 0; i < 5; i++) {
        const logits = await whole(greedy);
        greedy.push(logits.indexOf(Math.max(...logits)));
      }
      const made = { prompt: [0, 3], maxTokens: 5 };
      expect(await model.generate(source ?? {}, made)).toEqual(greedy.slice(2));
      model.dispose();
    },
  );

  test('rows that are selected go their own way, and beams find what a search over whole passes finds', async () => {
    const model = await shaken(engine, config);
    const repeated = (count) =>
      source &&
      Object.fromEntries(
        Object.entries(source).map(([k, [row]]) => [k, new Array(count).fill(row)]),
      );
    const last = async (target) => {
      const { data, shape } = await model.forward({ ...repeated(target.length), target });
      const [rows, length, width] = shape;
      return Array.from({ length: rows }, (_, row) =>
        data.slice(((row + 1) * length - 1) * width, (row + 1) * length * width),
      );
    };
    const decoding = model.decoding(source, { rows: 2, capacity: 4 });
    await decoding.read([[0, 1], [0, 2]]); // prettier-ignore
    await decoding.select([1, 0, 1]);
    const logits = await decoding.read([[3], [4], [5]]);
    expectClose(logits, (await last([[0, 2, 3], [0, 1, 4], [0, 2, 5]])).flatMap((row) => [...row]), decoded); // prettier-ignore
    expect([decoding.rows, decoding.length]).toEqual([3, 3]);
    decoding.dispose();

    // The same search, each time over everything.
    const [beams, maxTokens] = [3, 6];
    const logSoftmax = (row) => {
      const top = Math.max(...row);
      const sum = row.reduce((a, b) => a + Math.exp(b - top), 0);
      return [...row].map((value) => value - top - Math.log(sum));
    };
    const search = async (prompt, end) => {
      let open = [{ made: [], score: 0 }];
      const closed = [];
      for (let i = 0; i < maxTokens; i++) {
        const rows = await last(open.map(({ made }) => [...prompt, ...made]));
        const next = open.flatMap(({ made, score }, row) =>
          logSoftmax(rows[row]).map((log, token) => ({
            made: [...made, token],
            score: score + log,
          })),
        );
        next.sort((a, b) => b.score - a.score);
        open = [];
        for (const beam of next.slice(0, beams))
          (beam.made.at(-1) === end ? closed : open).push(beam);
      }
      closed.push(...open);
      const mean = ({ made, score }) => score / made.length;
      const best = closed.reduce((a, b) => (mean(b) > mean(a) ? b : a));
      return best.made.filter((token) => token !== end);
    };
    let changes = 0;
    for (const end of [undefined, 6]) {
      for (let first = 0; first < 7; first++) {
        const options = { prompt: [first, 3], endToken: end, maxTokens };
        const best = await model.generate(source ?? {}, { ...options, beams });
        expect(best).toEqual(await search(options.prompt, end));
        if (best.join() !== (await model.generate(source ?? {}, options)).join()) changes++;
      }
    }
    // A search that only ever follows the likeliest token would not do.
    expect(changes).toBeGreaterThan(0);
    model.dispose();
  });
});

test('generation leaves nothing in the heap, ended early and aborted too; a decoding says what it cannot do', async () => {
  const model = await shaken(engine, deeper);
  const input = { source: [[1, 4, 2]] };
  await model.generate(input, { maxTokens: 3 });
  const { inUseBytes } = await engine.memory();
  const inUse = async () => (await engine.memory()).inUseBytes;
  await model.generate(input, { beams: 4, maxTokens: 6 });
  for await (const token of model.generateStream(input, { maxTokens: 8 })) {
    expect(token).toBeGreaterThanOrEqual(0);
    break;
  }
  const abort = new AbortController();
  await expect(async () => {
    for await (const _ of model.generateStream(input, { signal: abort.signal })) abort.abort();
  }).rejects.toMatchObject({ code: 'ABORTED' });
  expect(await inUse()).toBe(inUseBytes);
  const decoding = model.decoding(input, { capacity: 3 });
  const refuses = (promise, words) =>
    expect(promise).rejects.toMatchObject({ message: expect.stringMatching(words) });
  await refuses(decoding.read([[1, 7]]), /^tokens: element 1 is 7/);
  await refuses(decoding.read([[1], [2]]), /^tokens: shape \[1,n\] wanted, got \[2,1\]/);
  await decoding.read([[0, 1]]);
  await refuses(decoding.read([[1, 2]]), /^tokens: room for 1 of capacity 3/);
  await refuses(decoding.read([[1]], { signal: abort.signal }), /abort/);
  await refuses(decoding.select([1]), /^rows\[0\]/);
  expect((await decoding.read([[2]])).shape).toEqual([1, 7]);
  expect(() => model.decoding({ source: [[1], [2]] })).toThrow(/^source: one sequence/);
  expect(() => model.decoding({ ...input, target: [[1]] })).toThrow(/target/);
  decoding.dispose();
  decoding.dispose();
  await expect(decoding.read([[1]])).rejects.toMatchObject({ code: 'DISPOSED' });
  expect(await inUse()).toBe(inUseBytes);
  model.dispose();
});

test('an engine in a worker reads the same, and tells what is not finite', async () => {
  const remote = await createEngine({ threads: 2, offMainThread: true });
  const input = { source: [[1, 4, 2]] };
  const models = [await shaken(engine, deeper), await shaken(remote, deeper)];
  for (const options of [{ beams: 3 }, { topK: 3, seed: 4 }, {}]) {
    const [here, there] = await Promise.all(models.map((model) => model.generate(input, options)));
    expect(there).toEqual(here);
  }
  const [, model] = models;
  const { inUseBytes } = await remote.memory();
  const decoding = model.decoding(input, { rows: 2, capacity: 2 });
  // Queued one behind the other; one that is aborted leaves the others alone.
  const abort = new AbortController();
  abort.abort();
  const calls = [
    decoding.read([[1], [2]]),
    decoding.read([[3], [4]], { signal: abort.signal }),
    decoding.select([0]),
  ];
  const [first, second] = await Promise.allSettled(calls);
  expect([first.status, second.reason?.code]).toEqual(['fulfilled', 'ABORTED']);
  expect([decoding.rows, decoding.length]).toEqual([1, 1]);
  expect((await decoding.read([[3]])).shape).toEqual([1, 7]);
  decoding.dispose();
  expect((await remote.memory()).inUseBytes).toBe(inUseBytes);
  const batch = { ...input, target: [[0, 1]], labels: [[1, 2]] };
  await model.setWeights({ 'generator.bias': tensor(new Array(7).fill(NaN), [7]) });
  const error = await model.trainStep(batch).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'INVALID_VALUE', step: 1, module: 'generator' });
  models[0].dispose();
  remote.dispose();
});
