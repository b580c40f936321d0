// Wasm: makes the heap: as large a maximum as the platform grants, shared if at all possible.
import { initFailed } from '../errors.js';
import type { MemoryImport } from './unshare.js';

export const pageBytes = 65536;

export interface MadeMemory {
  memory: WebAssembly.Memory;
  shared: boolean;
  maxBytes: number;
}

/**
 * Phones refuse to reserve a shared memory with a large maximum, so it is halved until one is granted. If none is, an
 * unshared one is made, and the binary must be unshared as well.
 */
export function makeMemory({ initial }: MemoryImport, maxBytes: number): MadeMemory {
  const most = Math.max(initial, Math.floor(maxBytes / pageBytes));
  let refusal: unknown;
  for (const shared of [true, false]) {
    for (let maximum = most; ; maximum = Math.max(initial, Math.floor(maximum / 2))) {
      try {
        const memory = new WebAssembly.Memory({ initial, maximum, shared });
        // An engine without threads ignores `shared`.
        const isShared =
          Object.prototype.toString.call(memory.buffer) === '[object SharedArrayBuffer]';
        if (isShared === shared) return { memory, shared, maxBytes: maximum * pageBytes };
        break;
      } catch (error) {
        refusal = error;
        if (maximum === initial) break;
      }
    }
  }
  throw initFailed(`no WebAssembly memory of ${initial * pageBytes} bytes can be had`, refusal);
}
