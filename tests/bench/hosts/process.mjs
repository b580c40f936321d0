// Bench: contenders in processes of their own: a crash, a hang or a heap of one is not the others'.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { failureOf } from './failure.mjs';

const child = fileURLToPath(new URL('child.mjs', import.meta.url));
const wasmPaths = fileURLToPath(
  new URL('../node_modules/@tensorflow/tfjs-backend-wasm/dist/', import.meta.url),
);

export const kind = 'node';
export const describe = async () => `Node ${process.versions.node}, V8 ${process.versions.v8}`;

/** @param {import('../contenders/index.mjs').Contender} contender */
export async function startHost(contender, threads) {
  const worker = fork(child, {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    execArgv: [],
  });
  let words = ''; // the end of what it said on standard error, for the report of a crash
  worker.stderr.setEncoding('utf8').on('data', (chunk) => (words = (words + chunk).slice(-2000)));
  const waiting = new Map();
  let next = 0;
  let ended;
  const ready = Promise.withResolvers();
  worker.on('message', ({ ready: isReady, id, result, error }) => {
    if (isReady) return ready.resolve();
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(failureOf(error));
    else resolve(result);
  });
  worker.on('close', (code, signal) => {
    const last =
      words
        .trim()
        .split('\n')
        .filter((line) => !line.startsWith('    at '))
        .at(-1) ?? '';
    ended = new Error(
      `its process ended with ${signal ?? `code ${code}`}${last && `: ${last.slice(0, 200)}`}`,
    );
    ready.reject(ended);
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  });

  const call = (method, args = {}, timeoutMs = 180_000) =>
    new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      const id = next++;
      const timer = setTimeout(() => {
        reject(new Error(`no answer within ${timeoutMs / 1000} s`));
        worker.kill('SIGKILL');
      }, timeoutMs);
      const settle = (then) => (value) => {
        clearTimeout(timer);
        then(value);
      };
      waiting.set(id, { resolve: settle(resolve), reject: settle(reject) });
      worker.send({ id, method, args });
    });

  const close = async () => {
    if (ended) return;
    const gone = new Promise((resolve) => worker.once('close', resolve));
    worker.kill('SIGKILL');
    await gone;
  };

  try {
    await ready.promise;
    const options = { threads, wasmPaths, ...contender.options };
    const { about, work } = await call('create', { module: contender.module, options }, 60_000);
    return { about, work, call, close, read: () => call('read'), ended: () => ended !== undefined };
  } catch (error) {
    await close();
    throw error;
  }
}

export async function stop() {}
