// Tests: an engine that is lost (its worker ended, its core trapped): everything pending and all that follows rejects at once with
// DEVICE_LOST, and nothing waits for ever.

import { createEngine } from 'headwise';
import { Core } from '../../dist/wasm/core.js';
import { runModule } from './child.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';

// Ends the worker of an engine while calls are on their way; prints what they came to.
const withWorkerThat = (ending) => `
  import workers from 'node:worker_threads';
  import { syncBuiltinESMExports } from 'node:module';
  const made = [];
  workers.Worker = class extends workers.Worker {
    constructor(...given) {
      super(...given);
      made.push(this);
    }
  };
  syncBuiltinESMExports();
  const { createEngine } = await import('headwise');
  const engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread: true });
  const layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 1 });
  const x = { data: new Float32Array(8 * 2000 * 64).fill(0.1), shape: [1, 8, 2000, 64] };
  const codeOf = (promise) => promise.then(() => 'done', ({ code }) => code);
  const pending = [
    engine.attention(x, x, x),
    engine.attention(x, x, x),
    layer.getWeights(),
    engine.memory(),
  ].map(codeOf);
  setTimeout(() => (${ending})(made[0]), 20);
  const codes = await Promise.all(pending);
  const later = await Promise.all([engine.positionalEncoding(1, 2), engine.memory()].map(codeOf));
  engine.dispose();
  console.log(JSON.stringify({ codes, later }));
`;

test.each([
  ['terminate()', '(worker) => worker.terminate()'],
  ["an 'exit' of its own", "(worker) => worker.emit('exit', 1)"],
  ['an error of its own', "(worker) => worker.emit('error', new Error('out of memory'))"],
])('a worker that ends by %s', async (_, ending) => {
  const { codes, later } = await runModule(withWorkerThat(ending));
  expect(codes).toEqual(Array(4).fill('DEVICE_LOST'));
  expect(later).toEqual(Array(2).fill('DEVICE_LOST'));
});

// (module (func (export "f") unreachable))
const trapping = new Uint8Array([
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0],
  ...[10, 5, 1, 3, 0, 0, 11],
]);
const { f: trap } = new WebAssembly.Instance(new WebAssembly.Module(trapping)).exports;

describe('a trap in the core', () => {
  const { begin, run } = Core.prototype;
  let engine;
  beforeEach(async () => {
    engine = await createEngine({ backend: 'wasm', threads: 1 });
  });
  afterEach(() => {
    Object.assign(Core.prototype, { begin, run });
    engine.dispose();
  });
  const small = randomTensor([2, 4], 1);
  const isLost = { name: 'HeadwiseError', code: 'DEVICE_LOST' };

  const expectLost = async () => {
    Object.assign(Core.prototype, { begin, run });
    expect(await errorOf(() => engine.attention(small, small, small))).toMatchObject(isLost);
    expect(await errorOf(() => engine.attentionSync(small, small, small))).toMatchObject(isLost);
    expect(await errorOf(() => engine.memory())).toMatchObject(isLost);
    const another = await createEngine({ backend: 'wasm', threads: 1 });
    await expectWorks(another);
    another.dispose();
  };

  test('between the slices of a call: those behind it too', async () => {
    Core.prototype.begin = function (...given) {
      const call = begin.apply(this, given);
      let slices = 0;
      call.run = () => (slices++ === 0 ? false : trap());
      return call;
    };
    const calls = [0, 1, 2].map(() => errorOf(() => engine.attention(small, small, small)));
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject(isLost);
      expect(error.message).toContain('trap');
    }
    await expectLost();
  });

  test('in a synchronous call', async () => {
    Core.prototype.run = () => trap();
    expect(await errorOf(() => engine.attentionSync(small, small, small))).toMatchObject(isLost);
    await expectLost();
  });

  test('in short business of a layer', async () => {
    const layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 1 });
    Core.prototype.run = () => trap();
    expect(await errorOf(() => layer.getWeights())).toMatchObject(isLost);
    await expectLost();
  });

  test('an error that is no trap leaves the engine as it was', async () => {
    Core.prototype.begin = () => {
      throw new RangeError('not a trap');
    };
    expect(await errorOf(() => engine.attention(small, small, small))).toMatchObject({
      message: 'not a trap',
    });
    Object.assign(Core.prototype, { begin, run });
    await expectWorks(engine);
  });
});
