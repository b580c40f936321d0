// Wasm: fills the core's argument structs by the layout that the core publishes. No offset stands in TypeScript.
import type { Layout } from './glue.js';
import type { Views } from './heap.js';

interface Slot {
  word: number;
  isFloat: boolean;
}

/**
 * A struct is filled on this side (`clear`, then `set`) and copied to the heap at once (`write`). What is not set is 0, null
 * for a pointer. One object serves all calls: nothing is allocated for a call.
 */
export class Struct {
  readonly size: number;
  readonly #layout: Layout;
  readonly #slots = new Map<string, Slot>();
  readonly #words: Int32Array;
  readonly #floats: Float32Array;

  constructor(layout: Layout, name: string) {
    const { size, fields } = layout[name] as Layout[string];
    this.size = size;
    this.#layout = layout;
    this.#words = new Int32Array(size / 4);
    this.#floats = new Float32Array(this.#words.buffer);
    this.#add(fields, 0);
  }

  /** Adds the fields of a struct that lies inside this one, by their own names. */
  with(field: string, inner: string): this {
    this.#add((this.#layout[inner] as Layout[string]).fields, this.offsetOf(field));
    return this;
  }

  #add(fields: Layout[string]['fields'], base: number): void {
    for (const [name, [offset, kind]] of Object.entries(fields)) {
      this.#slots.set(name, { word: (base + offset) / 4, isFloat: kind === 'f32' });
    }
  }

  #slot(name: string): Slot {
    const slot = this.#slots.get(name);
    if (slot === undefined) throw new Error(`the core's structs have no field ${name}`);
    return slot;
  }

  /** Where a field lies, counted from the struct's start. */
  offsetOf(name: string): number {
    return this.#slot(name).word * 4;
  }

  clear(): void {
    this.#words.fill(0);
  }

  set(name: string, value: number): void {
    const { word, isFloat } = this.#slot(name);
    // An Int32Array takes numbers modulo 2^32, which is right for addresses and unsigned words too.
    if (isFloat) this.#floats[word] = value;
    else this.#words[word] = value;
  }

  write(views: Views, address: number): void {
    views.i32.set(this.#words, address / 4);
  }
}
