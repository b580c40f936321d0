// Public: createEngine: checks the options, chooses where the engine lives, and starts it.
import type { Host } from './backend/backend.js';
import { Engine, type StaticInfo } from './engine.js';
import { aborted, unsupported } from './errors.js';
import type { GpuStart } from './backend/gpu-life.js';
import { Router } from './backend/router.js';
import {
  readEngineOptions,
  type CheckedEngineOptions,
  type EngineOptions,
} from './validation/engine-options.js';
import { version } from './version.js';
import type { startGpu as StartGpu } from './webgpu/start.js';
import { messageOf } from './wasm/files.js';
import { LocalHost } from './wasm/host.js';
import { RemoteHost, WorkerFailure } from './wasm/remote-host.js';

/**
 * Starts an engine. Each has its own heap and threads; several may live side by side.
 *
 * In a page the engine lives in a worker by default (`offMainThread`), so that the page never freezes. What is off, such as
 * threads in a page without cross-origin isolation, stands in `engine.info` with its reason, and one console warning names
 * the cure.
 *
 * @throws TypeError and RangeError for wrong options, `HeadwiseError` `UNSUPPORTED` when this platform lacks WebAssembly SIMD
 * (or the backend or variant asked for; for backend 'webgpu' with the reason as `gpuReasonCode`), `INIT_FAILED` when a file or a worker cannot be had, with its URL in the message,
 * `AbortError` when `signal` aborts the start-up. A failed start leaves nothing behind and may be tried again.
 */
export async function createEngine(options?: EngineOptions): Promise<Engine> {
  const checked = readEngineOptions(options);
  const { signal } = checked;
  if (signal === undefined) return start(checked);
  if (signal.aborted) throw aborted('createEngine', signal.reason);
  let onAbort: (() => void) | undefined;
  const started = start(checked);
  try {
    return await Promise.race([
      started,
      new Promise<never>((_, reject) => {
        onAbort = () => reject(aborted('createEngine', signal.reason));
        signal.addEventListener('abort', onAbort, { once: true });
      }),
    ]);
  } catch (error) {
    // Whatever still arrives is not wanted any more.
    started.then(
      (engine) => engine.dispose(),
      () => undefined,
    );
    throw error;
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

async function start({
  backend,
  offMainThread,
  load,
  gpuDevice,
  gpuCost,
  gpuPrecision,
  signal,
}: CheckedEngineOptions): Promise<Engine> {
  const isPage = typeof document === 'object' && typeof Worker === 'function';
  let host: Host | undefined;
  let mainThreadReason: string | undefined;
  if (offMainThread ?? isPage) {
    try {
      host = await RemoteHost.start(load);
    } catch (error) {
      if (!(error instanceof WorkerFailure)) throw error;
      if (offMainThread === true) throw error.toInitFailed();
      mainThreadReason = error.message;
      warn(
        `the engine runs on the page's main thread, which long calls will block: ${mainThreadReason}`,
      );
    }
  }
  const remote = host !== undefined;
  host ??= await LocalHost.start(load, signal);
  const { variant, threads, threadsReason } = host.info;
  const info: StaticInfo = { version, variant, threads, simd: true, offMainThread: remote };
  if (threadsReason !== undefined) {
    info.threadsReason = threadsReason;
    warn(`${threads === 1 ? 'one thread' : `${threads} threads`} only: ${threadsReason}`);
  }
  if (mainThreadReason !== undefined) info.offMainThreadReason = mainThreadReason;
  const core = host;
  const options = {
    demanded: backend === 'webgpu',
    device: gpuDevice as GPUDevice | undefined,
    cost: gpuCost,
    precision: gpuPrecision,
  };
  const startGpu: GpuStart =
    backend === 'wasm'
      ? () => Promise.resolve({ code: 'not-asked', reason: "backend 'wasm' was asked for" })
      : (ended, traffic) => loadAndStartGpu(options, core, ended, traffic);
  const router = new Router(core, options.demanded, startGpu);
  // With 'auto' nobody waits: the core computes until the GPU is there. Without a GPU to look for, this takes no time.
  if (backend !== 'auto') await router.gpuSettled;
  if (options.demanded && router.gpu === undefined) {
    const { gpuReason, gpuReasonCode } = router.gpuInfo;
    router.dispose();
    const error = unsupported(`backend 'webgpu' cannot be had: ${gpuReason}`);
    throw Object.assign(error, { gpuReasonCode });
  }
  return new Engine(router, info);
}

// A service worker may not import on demand, and a chunk may be missing: then the core does the work.
async function loadAndStartGpu(
  options: Parameters<typeof StartGpu>[0],
  core: Host,
  ...rest: Parameters<GpuStart>
): ReturnType<GpuStart> {
  let start: typeof StartGpu;
  try {
    start = (await import('./webgpu/start.js')).startGpu;
  } catch (error) {
    return {
      code: 'not-loaded',
      reason: `the GPU's code could not be loaded: ${messageOf(error)}`,
    };
  }
  return start(options, core, ...rest);
}

const warned = new Set<string>();

// Once a text: eight engines in one page have one cure.
function warn(text: string): void {
  if (warned.has(text)) return;
  warned.add(text);
  console.warn(`headwise: ${text}`);
}
