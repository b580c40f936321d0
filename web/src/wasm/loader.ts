// Wasm: from options to a running module: choose the build, get its bytes, make the heap, instantiate, start the threads.
// Start reading at loadModule.
import { initFailed } from '../errors.js';
import { wantsShortTurns } from './compiler.js';
import { messageOf, readBytes, resolveUrl } from './files.js';
import { glues, type Bindings, type GlueOptions, type Variant } from './glue.js';
import { makeMemory } from './memory.js';
import { chooseVariant } from './probe.js';
import { defaultThreads, loadThreads, whyOneThread } from './threads.js';
import { readMemoryImport, unshare } from './unshare.js';

/** Checked and structured-cloneable, so that a worker can be sent just this. */
export interface LoadOptions {
  threads: number | undefined;
  variant: Variant | 'auto';
  maxMemoryBytes: number;
  wasmUrl: string | undefined;
  workerUrl: string | undefined;
  wasmBinary: Uint8Array | undefined;
}

export interface LoadedModule {
  bindings: Bindings;
  memory: WebAssembly.Memory;
  info: ModuleInfo;
}

export interface ModuleInfo {
  variant: Variant;
  threads: number;
  threadsReason: string | undefined;
  maxBytes: number;
  /** The Web Lock that the engine's worker holds while it lives, where there are locks. */
  lock?: string;
}

export async function loadModule(
  options: LoadOptions,
  signal: AbortSignal | undefined,
): Promise<LoadedModule> {
  const variant = chooseVariant(wantedVariant(options));
  const { bytes, from } = await binaryOf(variant, options, signal);
  const wanted = readMemoryImport(bytes);
  if (wanted === undefined) {
    const start = new TextDecoder().decode(Uint8Array.from(bytes.subarray(0, 16)));
    throw initFailed(
      `${from} is not headwise's WebAssembly binary (it begins with ${JSON.stringify(start)})`,
    );
  }
  const { memory, shared, maxBytes } = makeMemory(wanted, options.maxMemoryBytes);
  const binary = shared === wanted.shared ? bytes : unshare(bytes, wanted);
  const bindings = await instantiate(variant, binary, memory, from);
  bindings.useShortTurns(wantsShortTurns());

  const count = options.threads ?? (await defaultThreads());
  let threadsReason = count > 1 ? whyOneThread(shared) : undefined;
  if (count > 1 && threadsReason === undefined) {
    const { reason } = await loadThreads(bindings.PThread, count - 1, variant, options.workerUrl);
    threadsReason = reason;
  }
  // The pool takes the loaded workers and no more: the glue has none in reserve then.
  const threads = bindings.start(
    threadsReason === undefined ? count : 1 + bindings.PThread.unusedWorkers.length,
  );
  if (threads === 0) throw initFailed('no memory for the thread pool');
  if (threads < count) threadsReason ??= `only ${threads} of ${count} threads could be started`;
  return { bindings, memory, info: { variant, threads, threadsReason, maxBytes } };
}

// One named file decides the build by its name; bytes say nothing of theirs, so they are taken for the plain build.
function wantedVariant({ variant, wasmUrl, wasmBinary }: LoadOptions): Variant | 'auto' {
  if (variant !== 'auto') return variant;
  if (wasmBinary !== undefined) return 'simd';
  if (wasmUrl !== undefined && !wasmUrl.endsWith('/')) {
    return wasmUrl.slice(wasmUrl.lastIndexOf('/')).includes('relaxed') ? 'relaxed' : 'simd';
  }
  return 'auto';
}

async function binaryOf(
  variant: Variant,
  { wasmUrl, wasmBinary }: LoadOptions,
  signal: AbortSignal | undefined,
): Promise<{ bytes: Uint8Array; from: string }> {
  if (wasmBinary !== undefined) return { bytes: wasmBinary, from: 'wasmBinary' };
  let url: URL;
  if (wasmUrl === undefined) {
    // Two literals, in the form that bundlers know, so that they bring the files along.
    url =
      variant === 'relaxed'
        ? new URL('./headwise-relaxed.wasm', import.meta.url)
        : new URL('./headwise-simd.wasm', import.meta.url);
  } else {
    url = await resolveUrl(wasmUrl.endsWith('/') ? `${wasmUrl}headwise-${variant}.wasm` : wasmUrl);
  }
  return { bytes: await readBytes(url, signal), from: url.href };
}

async function instantiate(
  variant: Variant,
  binary: Uint8Array,
  memory: WebAssembly.Memory,
  from: string,
): Promise<Bindings> {
  try {
    const module = await WebAssembly.compile(binary as BufferSource);
    return await new Promise((resolve, reject) => {
      const options: GlueOptions = {
        wasmMemory: memory,
        instantiateWasm(imports, receive) {
          WebAssembly.instantiate(module, imports).then(
            (instance) => receive(instance, module),
            reject,
          );
          return {};
        },
      };
      const create = () => glues[variant](options);
      withoutWaitAsync(create).then(resolve, reject);
    });
  } catch (error) {
    throw initFailed(
      `${from} cannot be used as the '${variant}' build: ${messageOf(error)}`,
      error,
    );
  }
}

// The glue listens for other threads' messages with Atomics.waitAsync unless the engine lacks it. That throws on unshared
// memory; on shared memory it waits for ever, and with it a disposed engine's heap stays for ever. Its other way, a message,
// will do: no thread of ours sends any. The glue looks within this synchronous call; nothing else runs meanwhile.
function withoutWaitAsync<T>(create: () => T): T {
  const atomics = Atomics as { waitAsync?: unknown };
  const { waitAsync } = atomics;
  if (waitAsync === undefined) return create();
  atomics.waitAsync = undefined;
  try {
    return create();
  } finally {
    atomics.waitAsync = waitAsync;
  }
}
