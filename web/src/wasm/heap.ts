// Wasm: the one owner of the module's memory: views of it, allocation, and the staging blocks that calls reuse.
//
// Growing the memory gives it another buffer and detaches (or outdates) every view, so views are asked for anew after each
// allocation; they are the same ones as long as these reach far enough.
import { outOfMemory } from '../errors.js';
import { isFloat32Array } from '../validation/arrays.js';
import { setAll } from '../validation/fixed.js';
import type { Bindings } from './glue.js';

/** Views of the whole heap; good until the next allocation or call. */
export interface Views {
  f32: Float32Array;
  i32: Int32Array;
  u32: Uint32Array;
  u8: Uint8Array;
}

/** What the core's addresses are aligned to. */
export const alignment = 64;

export function alignUp(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

// A block larger than this is given back after the call; smaller ones are kept for the next.
const keptBytes = 32 * 2 ** 20;
// Blocks up to this size grow by doubling; larger ones are as large as needed.
const doublingBytes = 2 ** 20;

// For so few, a view of them or a call of set() takes longer than one element after the other.
const fewFloats = 64;

/** Staging memory of one call. */
export interface Block {
  address: number;
  bytes: number;
}

export class Heap {
  readonly #bindings: Bindings;
  readonly #memory: WebAssembly.Memory;
  readonly #maxBytes: number;
  // Blocks that no call uses. One call at a time needs one; a call begun while another is paused needs a second.
  readonly #idle: Block[] = [];
  #views: Views | undefined;
  // Blocks in use: calls in progress, which may be paused between two slices.
  #used = 0;

  constructor(bindings: Bindings, memory: WebAssembly.Memory, maxBytes: number) {
    this.#bindings = bindings;
    this.#memory = memory;
    this.#maxBytes = maxBytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Views that reach to the address `end`, where the heap reaches as far; by default as far as it does. */
  views(end = this.#memory.buffer.byteLength): Views {
    // When the heap has grown, shared views stay right as far as they go; others are detached, and their length is 0. The length
    // tells both, and costs less than asking the memory for its buffer.
    if (this.#views === undefined || this.#views.u8.length < end) {
      const { buffer } = this.#memory;
      this.#views = {
        f32: new Float32Array(buffer),
        i32: new Int32Array(buffer),
        u32: new Uint32Array(buffer),
        u8: new Uint8Array(buffer),
      };
    }
    return this.#views;
  }

  /** Copies an array to an address. */
  write(array: Float32Array | Int32Array | Uint8Array, address: number): void {
    const { f32, i32, u8 } = this.views(address + array.byteLength);
    if (array.BYTES_PER_ELEMENT === 1) u8.set(array, address);
    else if (!isFloat32Array(array)) i32.set(array, address / 4);
    else if (array.length > fewFloats) f32.set(array, address / 4);
    else for (let i = 0; i < array.length; i++) f32[address / 4 + i] = array[i] as number;
  }

  /**
   * Floats of the heap, as an own array. Not slice(): of unshared memory it takes five times as long in V8.
   *
   * @param array of just `length` elements, if the caller has one.
   */
  read(
    address: number,
    length: number,
    array: Float32Array = new Float32Array(length),
  ): Float32Array {
    const start = address / 4;
    const { f32 } = this.views(address + 4 * length);
    if (length > fewFloats) setAll(array, f32.subarray(start, start + length));
    else for (let i = 0; i < length; i++) array[i] = f32[start + i] as number;
    return array;
  }

  /** At least `bytes`; throws OUT_OF_MEMORY naming `what`. Give it back to `returnBlock`. */
  takeBlock(bytes: number, what: string): Block {
    this.check(bytes, what);
    const block = this.#idle.pop();
    if (block !== undefined) {
      if (block.bytes >= bytes) {
        this.#used++;
        return block;
      }
      this.#bindings.release(block.address);
    }
    const size =
      bytes <= doublingBytes ? 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096))) : alignUp(bytes);
    let address = this.#bindings.allocate(size);
    if (address === 0) {
      // Whatever is kept for convenience is given up first.
      this.#trim(0);
      address = this.#bindings.allocate(size);
    }
    if (address === 0) throw outOfMemory(what, bytes, this.#maxBytes);
    this.#used++;
    return { address, bytes: size };
  }

  /** Runs `use` with a block of at least `bytes`, and gives it back. */
  withBlock<T>(bytes: number, what: string, use: (address: number) => T): T {
    const block = this.takeBlock(bytes, what);
    try {
      return use(block.address);
    } finally {
      this.returnBlock(block);
    }
  }

  returnBlock(block: Block): void {
    this.#used--;
    if (block.bytes > keptBytes) {
      this.#bindings.release(block.address);
      if (this.#used === 0) this.#bindings.trimScratch(keptBytes);
    } else {
      this.#idle.push(block);
    }
  }

  /** Throws OUT_OF_MEMORY when the heap could never hold this, before any work. */
  check(bytes: number, what: string): void {
    if (bytes > this.#maxBytes) throw outOfMemory(what, bytes, this.#maxBytes);
  }

  // Gives up idle blocks, and the threads' working memory when it is above `scratchBytes` and no call is in progress.
  #trim(scratchBytes: number): void {
    for (const { address } of this.#idle.splice(0)) this.#bindings.release(address);
    if (this.#used === 0) this.#bindings.trimScratch(scratchBytes);
  }

  /** Bytes in use, without what was only kept for the next call: that is given up, so that equal states count the same. */
  usage(): { heapBytes: number; inUseBytes: number; peakBytes: number } {
    this.#trim(0);
    return {
      heapBytes: this.#memory.buffer.byteLength,
      inUseBytes: this.#bindings.inUseBytes(),
      peakBytes: this.#bindings.peakBytes(),
    };
  }
}
