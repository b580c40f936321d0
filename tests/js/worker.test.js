// Tests: the engine in a worker (as pages have it by default, here in Node), and where its files are looked for.

import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createEngine, tensor } from 'headwise';
import { expectSame } from './compare.js';
import { root, runModule } from './child.js';
import { errorOf, expectWorks } from './support/known.js';
import { randomTensor } from './support/random.js';

const dist = pathToFileURL(join(root, 'dist/'));

describe('an engine in a worker', () => {
  let local;
  let remote;
  beforeAll(async () => {
    local = await createEngine({ threads: 2 });
    remote = await createEngine({ threads: 2, offMainThread: true });
  });
  afterAll(() => {
    local.dispose();
    remote.dispose();
  });

  test('gives the same bits, and leaves the inputs alone', async () => {
    expect(remote.info).toMatchObject({
      offMainThread: true,
      threads: 2,
      variant: local.info.variant,
    });
    const inputs = [1, 2, 3].map((seed) => randomTensor([2, 2, 9, 8], seed));
    const mask = { data: Uint8Array.from({ length: 81 }, (_, i) => i % 3), shape: [9, 9] };
    const options = {
      mask,
      returnWeights: { heads: [1] },
      returnLogSumExp: true,
      causalOffset: [0, 1],
      causal: true,
    };
    const a = local.attentionSync(...inputs, options);
    const b = await remote.attention(...inputs, options);
    for (const part of ['output', 'weights', 'logSumExp']) {
      expect(b[part].shape).toEqual(a[part].shape);
      expectSame(b[part], a[part]);
    }
    expect(inputs[0].data).toHaveLength(2 * 2 * 9 * 8);
    const out = new Float32Array(a.output.data.length);
    expect((await remote.attention(...inputs, { ...options, out })).output.data).toBe(out);
    expectSame(out, a.output);
    expectSame(
      await remote.linear(inputs[0], randomTensor([8, 3], 4)),
      local.linearSync(inputs[0], randomTensor([8, 3], 4)),
    );
    expectSame(await remote.positionalEncoding(3, 5), local.positionalEncodingSync(3, 5));
    expectSame(await remote.embedding([1, 0], [[1], [2]]), [2, 1]);
  });

  test('hosts layers', async () => {
    const config = { embedDim: 6, numHeads: 2, seed: 5 };
    const [a, b] = [local, remote].map((engine) => engine.multiHeadAttention(config));
    const x = randomTensor([2, 4, 6], 1);
    expectSame((await b.forward(x)).output, a.forwardSync(x).output);
    await b.setWeights({ output: { bias: [1, 2, 3, 4, 5, 6] } });
    expectSame((await b.getWeights()).output.bias, [1, 2, 3, 4, 5, 6]);
    a.dispose();
    b.dispose();
    const inUse = (await remote.memory()).inUseBytes;
    expect((await remote.memory()).inUseBytes).toBe(inUse);
    const tooBig = remote.multiHeadAttention({ embedDim: 2 ** 20, numHeads: 1 });
    expect(await errorOf(() => tooBig.getWeights())).toMatchObject({
      name: 'RangeError',
      code: 'OUT_OF_MEMORY',
    });
    await expectWorks(remote);
  });

  test('errors arrive with their class and code', async () => {
    const t = tensor([[1]]);
    expect(await errorOf(() => remote.attentionSync(t, t, t))).toMatchObject({
      name: 'HeadwiseError',
      code: 'UNSUPPORTED',
    });
    expect(await errorOf(() => remote.attention(t, t))).toBeInstanceOf(TypeError);
    const wide = randomTensor([1, 1, 65_536, 1], 1);
    const error = await errorOf(() => remote.attention(wide, wide, wide, { returnWeights: true }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect(error.bytesWanted).toBeGreaterThan(2 ** 34);
    expect(error.stack).toMatch(/OUT_OF_MEMORY|wanted/);
    await expectWorks(remote);
  });

  test('overlapping calls, an abort among them', async () => {
    const inputs = [1, 2, 3].map((seed) => randomTensor([1, 8, 2048, 64], seed));
    const controller = new AbortController();
    const first = errorOf(() => remote.attention(...inputs, { signal: controller.signal }));
    const others = [5, 6, 7].map((value) =>
      remote.attention(tensor([[0]]), tensor([[0]]), tensor([[value]])),
    );
    setTimeout(() => controller.abort('enough'), 20);
    expect(await first).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: 'enough' });
    const values = (await Promise.all(others)).map(({ output }) => output.data[0]);
    expect(values).toEqual([5, 6, 7]);
  });

  test('dispose rejects what is under way', async () => {
    const other = await createEngine({ threads: 1, offMainThread: true });
    const inputs = [1, 2, 3].map((seed) => randomTensor([1, 8, 2048, 64], seed));
    const call = errorOf(() => other.attention(...inputs));
    other.dispose();
    other.dispose();
    expect(await call).toMatchObject({ name: 'HeadwiseError', code: 'DISPOSED' });
    expect(await errorOf(() => other.memory())).toMatchObject({ code: 'DISPOSED' });
  });
});

describe('where files lie', () => {
  let folder;
  let served;
  let server;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'headwise '));
    served = { requests: [] };
    server = createServer((request, response) => {
      served.requests.push(request.url);
      const name = request.url.split('/').at(-1);
      if (request.url.startsWith('/missing/')) {
        response.writeHead(404).end('no');
      } else if (request.url.startsWith('/page/')) {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>');
      } else {
        response.writeHead(200, { 'content-type': 'application/octet-stream' });
        response.end(readFileSync(new URL(`wasm/${name}`, dist)));
      }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    served.base = `http://127.0.0.1:${server.address().port}`;
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });

  test.each([false, true])(
    'a folder or a file by URL, whatever its MIME type (in a worker: %s)',
    async (offMainThread) => {
      for (const wasmUrl of [
        `${served.base}/files/`,
        new URL(`${served.base}/files/headwise-simd.wasm`),
      ]) {
        const engine = await createEngine({ threads: 2, wasmUrl, offMainThread });
        await expectWorks(engine);
        engine.dispose();
      }
      expect(served.requests).toContain('/files/headwise-simd.wasm');
    },
  );

  test('a binary of one’s own, and of another build under a wrong name', async () => {
    const bytes = readFileSync(new URL('wasm/headwise-simd.wasm', dist));
    for (const wasmBinary of [bytes, new Uint8Array(bytes).buffer]) {
      const engine = await createEngine({ threads: 1, wasmBinary });
      expect(engine.info.variant).toBe('simd');
      await expectWorks(engine);
      engine.dispose();
    }
    const error = await errorOf(() => createEngine({ wasmBinary: bytes.subarray(0, 1000) }));
    expect(error).toMatchObject({ name: 'HeadwiseError', code: 'INIT_FAILED' });
  });

  test.each([
    ['a 404', '/missing/', /404/],
    ['a page instead of a binary', '/page/', /not headwise's WebAssembly/],
  ])('%s is INIT_FAILED with the URL, and the next attempt works', async (_, path, reason) => {
    for (const offMainThread of [false, true]) {
      const error = await errorOf(() =>
        createEngine({ wasmUrl: served.base + path, variant: 'simd', offMainThread }),
      );
      expect(error).toMatchObject({ name: 'HeadwiseError', code: 'INIT_FAILED' });
      expect(error.message).toMatch(reason);
      expect(error.message).toContain(`${served.base}${path}headwise-simd.wasm`);
    }
    const engine = await createEngine({ threads: 1 });
    await expectWorks(engine);
    engine.dispose();
  });

  test('a missing worker script: one thread with a reason, or INIT_FAILED where the engine was to live there', async () => {
    const { info, value, code, stderr } = await runModule(`
      import { createEngine } from 'headwise';
      const workerUrl = new URL('nowhere.js', 'file:///');
      const engine = await createEngine({ threads: 2, workerUrl });
      const t = (data) => ({ data: Float32Array.from(data), shape: [data.length, 1] });
      const { output } = await engine.attention(t([0]), t([0, 0]), t([2, 4]));
      const code = await createEngine({ offMainThread: true, workerUrl }).catch((error) => error.code);
      console.log(JSON.stringify({ info: engine.info, value: output.data[0], code }));
    `);
    expect(info).toMatchObject({ threads: 1 });
    expect(info.threadsReason).toMatch(/worker failed/);
    expect(stderr.match(/headwise: one thread only/g)).toHaveLength(1);
    expect(value).toBe(3);
    expect(code).toBe('INIT_FAILED');
  });

  test('a path with spaces, # and letters of any script', async () => {
    const place = join(folder, 'a #b? 多头 é%20');
    cpSync(new URL('.', dist), place, { recursive: true });
    const { info, value } = await runModule(`
      import { createEngine } from ${JSON.stringify(pathToFileURL(join(place, 'index.js')).href)};
      const engine = await createEngine({ threads: 2 });
      const byPath = await createEngine({ threads: 2, wasmUrl: ${JSON.stringify(join(place, 'wasm/headwise-simd.wasm'))} });
      const t = (data) => ({ data: Float32Array.from(data), shape: [data.length, 1] });
      let value = 0;
      for (const one of [engine, byPath]) {
        value += (await one.attention(t([0]), t([0, 0]), t([2, 4]))).output.data[0];
      }
      console.log(JSON.stringify({ info: engine.info, value }));
    `);
    expect(info.threads).toBe(2);
    expect(value).toBe(6);
  });
});
