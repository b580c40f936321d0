// Validation: createEngine's options.
import { costFields, type CostModel } from '../backend/cost-model.js';
import { invalidType, invalidValue } from '../errors.js';
import type { Variant } from '../wasm/glue.js';
import type { LoadOptions } from '../wasm/loader.js';
import { describe } from './arrays.js';
import {
  readBoolean,
  readChoice,
  readFinite,
  readInteger,
  readOptions,
  readSignal,
} from './options.js';

/** How q, k and v lie on the GPU while attention is computed. */
export type GpuPrecision = 'f32' | 'f16';

/** Options of {@link createEngine}. */
export interface EngineOptions {
  /**
   * What computes. 'auto' (default): each call goes to the GPU when that is faster by measurement, and to WebAssembly else. The
   * start does not wait for the GPU (`engine.gpuReady()` does), and until it is there WebAssembly computes.
   * 'wasm': no GPU is looked for. 'webgpu': the GPU does all that it can; without a usable one the start is UNSUPPORTED.
   */
  backend?: 'auto' | 'wasm' | 'webgpu' | undefined;
  /** Threads, 1…64. Default: as many as the machine has cores, at most 16. */
  threads?: number | undefined;
  /** Which WebAssembly build: 'relaxed' needs relaxed SIMD. Default 'auto': the faster one that runs here. */
  variant?: 'auto' | Variant | undefined;
  /** Whether the engine lives in a worker, so that the page never freezes. Default: true in a page, elsewhere false. */
  offMainThread?: boolean | undefined;
  /** Ceiling for the WebAssembly heap in bytes, from 4 MiB. Default 4 GiB, or what the platform grants. */
  maxMemoryBytes?: number | undefined;
  /** A GPUDevice of the caller's, used and never destroyed by the engine. Ask its adapter for large limits. */
  gpuDevice?: object | undefined;
  /**
   * Times that 'auto' decides by, given instead of measured, in whole or in part. With it a software adapter is used too.
   * Measured ones are kept: in a page in its local storage, for this adapter and this version of the package, else for the process.
   */
  gpuCost?: Partial<CostModel> | undefined;
  /**
   * 'f16': attention on the GPU may hold q, k and v as halves where that is faster; sums and softmax stay float32. Outputs then
   * err by about 1e-3 of the inputs' scale, and inputs above 65504 have no result. Default 'f32'.
   */
  gpuPrecision?: GpuPrecision | undefined;
  /** Where the `.wasm` files lie: a folder (ending in '/'), or one file (its name, or `variant`, tells which build it is). */
  wasmUrl?: string | URL | undefined;
  /** Where `worker.js` lies, the script of every worker of the engine. */
  workerUrl?: string | URL | undefined;
  /** The binary itself instead of a file; `variant` tells which build it is, by default 'simd'. */
  wasmBinary?: ArrayBuffer | ArrayBufferView | undefined;
  /** Aborts the start-up. */
  signal?: AbortSignal | undefined;
}

export const maxThreads = 64;
const leastMemoryBytes = 4 * 2 ** 20;
const mostMemoryBytes = 4 * 2 ** 30;

const names = new Set([
  'backend',
  'threads',
  'variant',
  'offMainThread',
  'maxMemoryBytes',
  'gpuDevice',
  'gpuCost',
  'gpuPrecision',
  'wasmUrl',
  'workerUrl',
  'wasmBinary',
  'signal',
]);

export interface CheckedEngineOptions {
  backend: 'auto' | 'wasm' | 'webgpu';
  gpuDevice: object | undefined;
  gpuCost: Partial<CostModel> | undefined;
  gpuPrecision: GpuPrecision;
  offMainThread: boolean | undefined;
  load: LoadOptions;
  signal: AbortSignal | undefined;
}

export function readEngineOptions(value: EngineOptions | undefined): CheckedEngineOptions {
  const options = readOptions('options', value, names);
  const backend =
    options.backend === undefined
      ? 'auto'
      : readChoice('backend', options.backend, ['auto', 'wasm', 'webgpu']);
  if (
    options.gpuDevice !== undefined &&
    (typeof options.gpuDevice !== 'object' || options.gpuDevice === null)
  ) {
    throw invalidType(`gpuDevice: a GPUDevice wanted, got ${describe(options.gpuDevice)}`);
  }
  const checked = {
    gpuDevice: options.gpuDevice as object | undefined,
    gpuCost: readCost(options.gpuCost),
    gpuPrecision:
      options.gpuPrecision === undefined
        ? ('f32' as const)
        : readChoice('gpuPrecision', options.gpuPrecision, ['f32', 'f16']),
    offMainThread:
      options.offMainThread === undefined
        ? undefined
        : readBoolean('offMainThread', options.offMainThread, false),
    load: {
      threads:
        options.threads === undefined
          ? undefined
          : readInteger('threads', options.threads, 1, maxThreads),
      variant:
        options.variant === undefined
          ? 'auto'
          : readChoice('variant', options.variant, ['auto', 'relaxed', 'simd']),
      maxMemoryBytes: readMemoryCeiling(options.maxMemoryBytes),
      wasmUrl: readUrl('wasmUrl', options.wasmUrl),
      workerUrl: readUrl('workerUrl', options.workerUrl),
      wasmBinary: readBinary(options.wasmBinary),
    } satisfies LoadOptions,
    signal: readSignal('signal', options.signal),
  };
  return { backend, ...checked };
}

const costNames = new Set<string>(costFields);

function readCost(value: unknown): Partial<CostModel> | undefined {
  if (value === undefined) return undefined;
  const given = readOptions('gpuCost', value, costNames);
  for (const [name, number] of Object.entries(given)) {
    if (readFinite(`gpuCost.${name}`, number) <= 0)
      throw invalidValue(`gpuCost.${name}: a number above 0 wanted, got ${String(number)}`);
  }
  return { ...given };
}

function readMemoryCeiling(value: unknown): number {
  if (value === undefined) return mostMemoryBytes;
  const bytes = readInteger('maxMemoryBytes', value, leastMemoryBytes, Number.MAX_SAFE_INTEGER);
  return Math.min(bytes, mostMemoryBytes);
}

function readUrl(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const isUrl = Object.prototype.toString.call(value) === '[object URL]';
  if (typeof value !== 'string' && !isUrl)
    throw invalidType(`${name}: a string or URL wanted, got ${describe(value)}`);
  const text = String(value);
  if (text === '') throw invalidValue(`${name}: a URL wanted, got an empty string`);
  return text;
}

function readBinary(value: unknown): Uint8Array | undefined {
  if (value === undefined) return undefined;
  if (ArrayBuffer.isView(value))
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
  const kind = Object.prototype.toString.call(value);
  if (kind === '[object ArrayBuffer]' || kind === '[object SharedArrayBuffer]') {
    return new Uint8Array(value as ArrayBuffer).slice();
  }
  throw invalidType(`wasmBinary: an ArrayBuffer or a view of one wanted, got ${describe(value)}`);
}
