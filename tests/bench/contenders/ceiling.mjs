// Bench: what the machine allows at best, from the package's own WebAssembly build: multiply-adds that wait for nothing
// (with the kernels' MulAdd), and reads of a buffer that no cache holds. cpp/include/headwise/probe.h says how.
import { loadModule } from '../../../dist/wasm/loader.js';

// Several times the last cache of any server's share, and half of what a page may be granted.
const readBytes = 512 * 2 ** 20;
// Some milliseconds.
const tasksPerRun = 32;

export async function create({ what, threads, variant = 'auto' }) {
  const options = { threads, variant, maxMemoryBytes: 2 ** 30 };
  const { bindings, memory, info } = await loadModule(options, undefined);
  if (info.threads !== threads)
    throw new Error(`${threads} threads wanted, ${info.threads} got: ${info.threadsReason}`);
  const work = { flops: 0, bytes: 0 };
  let run;
  if (what === 'compute') {
    run = () => bindings.probeMultiplyAdd(tasksPerRun * threads);
    work.flops = run();
  } else {
    const data = bindings.allocate(readBytes) >>> 0;
    if (data === 0) throw new Error(`no ${readBytes} bytes for the memory probe`);
    // Memory that nobody wrote to is one page of zeros to the system, and reading it reads a cache.
    new Float32Array(memory.buffer, data, readBytes / 4).fill(1);
    run = () => bindings.probeRead(data, readBytes / 4);
    work.bytes = readBytes;
  }
  return { about: info.variant, prepare() {}, run, read: () => null, release() {}, work };
}
