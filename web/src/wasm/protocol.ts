// Wasm: the messages between a page and the worker that hosts its engine.
import type { ErrorRecord } from '../errors.js';
import type { Request, Response } from '../request.js';
import type { HeapUsage } from '../backend/backend.js';
import type { ModuleInfo } from './loader.js';

/** After the role (see threads.ts), which starts the engine. */
export type ToWorker =
  { id: number; request: Request } | { id: number; abort: true } | { id: number; memory: true };

export type FromWorker =
  /** The script runs; the module is being loaded. */
  | { hello: true }
  | { ready: ModuleInfo }
  | { failed: ErrorRecord }
  | { id: number; response: Response }
  | { id: number; usage: HeapUsage }
  | { id: number; error: ErrorRecord };

/** The buffers of all arrays in a message, each once. */
export function buffersOf(value: object): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  const walk = (node: unknown): void => {
    if (ArrayBuffer.isView(node)) buffers.add(node.buffer as ArrayBuffer);
    else if (typeof node === 'object' && node !== null) Object.values(node).forEach(walk);
  };
  walk(value);
  return [...buffers];
}
