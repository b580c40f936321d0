// Wasm: the types of Emscripten's glue and of what cpp/bindings offers. Imports both glues statically, because service
// workers know no import(); a glue does nothing until it is called.
import type { Operation } from '../request.js';
import createRelaxed from './headwise-relaxed.mjs';
import createSimd from './headwise-simd.mjs';

/** Which WebAssembly build: with relaxed SIMD or without. */
export type Variant = 'relaxed' | 'simd';

/** What both kinds of worker (the Web's and Node's) have once they are wrapped. */
export interface ThreadWorker {
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: unknown) => void) | null;
  /** Node's alone: it has ended, though nobody here ended it. */
  onexit?: (() => void) | null;
  postMessage(message: unknown, transfer?: readonly ArrayBufferLike[]): void;
  terminate(): void;
  /** Node: whether the worker alone keeps the process alive. */
  ref?(): void;
  unref?(): void;
}

/** The parts of Emscripten's thread library that `threads.ts` uses. */
export interface ThreadLibrary {
  unusedWorkers: ThreadWorker[];
  loadWasmModuleToWorker(worker: ThreadWorker): Promise<unknown>;
  terminateAllThreads(): void;
}

/** `struct → { size, fields: name → [offset, kind] }`, as cpp/bindings/layout_binding.cc publishes it. */
export type Layout = Record<
  string,
  { size: number; fields: Record<string, [offset: number, kind: string]> }
>;

/** Of the address of an operation's struct. */
type OfArgs = (args: number) => number;

/** What each operation has: `_attention` does a call at once and gives a status, `beginAttention` gives a call's handle or 0. */
type OperationBindings = Record<`_${Operation}` | `begin${Capitalize<Operation>}`, OfArgs>;

/** The functions of cpp/bindings. Addresses are numbers; a status is 0 when all is well. */
export interface Bindings extends OperationBindings {
  PThread: ThreadLibrary;
  layout(): Layout;
  /** Before start. */
  useShortTurns(isShort: boolean): void;
  start(threads: number): number;
  allocate(bytes: number): number;
  release(address: number): void;
  trimScratch(bytes: number): void;
  inUseBytes(): number;
  peakBytes(): number;
  statusCode(): number;
  statusArgument(): string;
  statusBytes(): number;
  runCall(call: number, budgetMs: number): boolean;
  endCall(call: number): void;
  createLayer(config: number): number;
  destroyLayer(layer: number): void;
  setParameters(layer: number, sources: number): number;
  getParameter(layer: number, kind: number, target: number): void;
  createCache(config: number): number;
  forkCache(from: number, rows: number, count: number): number;
  destroyCache(cache: number): void;
  /** The address of the lengths. */
  cacheLengths(cache: number): number;
  /** The address of the places from which on a ring has its tokens. */
  cacheHeldFrom(cache: number): number;
  trimCache(cache: number, lengths: number): number;
  dropTokens(cache: number, begins: number, ends: number): number;
  createTransformer(config: number, moments: number): number;
  destroyTransformer(model: number): void;
  transformerTensors(
    model: number,
  ): { name: string; shape: number[]; address: number; moment: boolean }[];
  createDecoding(model: number, rows: number, capacity: number): number;
  selectDecoding(decoding: number, rows: number, count: number): number;
  decodingLength(decoding: number): number;
  destroyDecoding(decoding: number): void;
  /** The ceilings, for the benchmark: cpp/include/headwise/probe.h. Operations done; a status. */
  probeMultiplyAdd(tasks: number): number;
  probeRead(data: number, count: number): number;
}

export interface GlueOptions {
  wasmMemory: WebAssembly.Memory;
  instantiateWasm(
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): object;
}

/** Emscripten's factory. On a thread's worker it is called without options and waits for messages. */
export type Glue = (options?: GlueOptions) => Promise<Bindings>;

export const glues: Readonly<Record<Variant, Glue>> = { relaxed: createRelaxed, simd: createSimd };
