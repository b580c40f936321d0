// Wasm: what the files of the core's objects (layers, transformers, caches, decodings) work with.
import type { Bindings, Layout } from './glue.js';
import type { Heap } from './heap.js';
import type { Registry } from './registry.js';

export interface CoreParts {
  bindings: Bindings;
  heap: Heap;
  layout: Layout;
  registry: Registry;
  /** The core's last status as an error. `what` names the call. */
  error(what: string): Error;
}
