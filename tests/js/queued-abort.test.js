// Tests: the signal of a call that waits in an engine's queue: it rejects at once, not when its turn comes, and listens no longer
// than it waits. (Calls in progress: concurrency.test.js.)

import { createEngine } from 'headwise';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';

const long = [1, 2, 3].map((seed) => randomTensor([1, 8, 1500, 64], seed));
const small = [4, 5, 6].map((seed) => randomTensor([2, 4], seed));

/** A signal that counts its listeners. */
function counted({ signal }) {
  let listeners = 0;
  return {
    get aborted() {
      return signal.aborted;
    },
    get reason() {
      return signal.reason;
    },
    addEventListener(...given) {
      listeners++;
      signal.addEventListener(...given);
    },
    removeEventListener(...given) {
      listeners--;
      signal.removeEventListener(...given);
    },
    count: () => listeners,
  };
}

describe.each([
  ['on this thread', false],
  ['in a worker', true],
])('an engine %s', (_, offMainThread) => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ backend: 'wasm', threads: 1, offMainThread });
  });
  afterAll(() => engine.dispose());

  test('rejects before the call in front of it is done; the one behind it goes on', async () => {
    const order = [];
    const first = engine.attention(...long).then(() => order.push('first'));
    const controller = new AbortController();
    const queued = errorOf(() => engine.attention(...small, { signal: controller.signal })).finally(
      () => order.push('aborted'),
    );
    const last = expectWorks(engine).then(() => order.push('last'));
    controller.abort(new Error('enough'));
    expect(await queued).toMatchObject({ name: 'AbortError', code: 'ABORTED' });
    expect((await queued).cause).toMatchObject({ message: 'enough' });
    await Promise.all([first, last]);
    expect(order).toEqual(['aborted', 'first', 'last']);
  });

  test('one that was aborted before is not queued at all', async () => {
    const order = [];
    const first = engine.attention(...long).then(() => order.push('first'));
    const signal = AbortSignal.abort();
    const queued = errorOf(() => engine.attention(...small, { signal }));
    expect(await queued.finally(() => order.push('aborted'))).toMatchObject({ code: 'ABORTED' });
    await first;
    expect(order).toEqual(['aborted', 'first']);
  });

  test('listeners go when a call is done or aborted', async () => {
    const [done, ended] = [new AbortController(), new AbortController()];
    const [a, b] = [counted(done), counted(ended)];
    const first = engine.attention(...long);
    const calls = [a, b].map((signal) => engine.attention(...small, { signal }));
    expect([a.count(), b.count()]).toEqual([1, 1]);
    ended.abort();
    expect(await errorOf(() => calls[1])).toMatchObject({ code: 'ABORTED' });
    await calls[0];
    await first;
    expect([a.count(), b.count()]).toEqual([0, 0]);
  });

  test('a look-alike without removeEventListener does no harm', async () => {
    const signal = { aborted: false, reason: undefined, addEventListener() {} };
    const first = engine.attention(...long);
    const queued = engine.attention(...small, { signal });
    await first;
    expect((await queued).output.shape).toEqual([2, 4]);
  });
});
