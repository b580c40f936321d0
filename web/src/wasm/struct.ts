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
  // Those of a field's own fields, in their order, such as a field of strides has.
  readonly #groups = new Map<string, Slot[]>();
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
      const slot = { word: (base + offset) / 4, isFloat: kind === 'f32' };
      this.#slots.set(name, slot);
      const group = name.slice(0, Math.max(name.lastIndexOf('.'), 0));
      this.#groups.set(group, [...(this.#groups.get(group) ?? []), slot]);
    }
  }

  #slot(name: string): Slot {
    return this.#slots.get(name) ?? missing(name);
  }

  /** Where a field lies, counted from the struct's start. */
  offsetOf(name: string): number {
    return this.#slot(name).word * 4;
  }

  clear(): void {
    this.#words.fill(0);
  }

  set(name: string, value: number): void {
    this.#put(this.#slot(name), value);
  }

  /** Sets the first of the fields that a field has: strides, by the name of all. */
  setAll(name: string, values: readonly number[]): void {
    const slots = this.#groups.get(name) ?? missing(name);
    for (let i = 0; i < values.length; i++) {
      this.#put(slots[i] ?? missing(`${name}, ${i}`), values[i] as number);
    }
  }

  #put({ word, isFloat }: Slot, value: number): void {
    // An Int32Array takes numbers modulo 2^32, which is right for addresses and unsigned words too.
    if (isFloat) this.#floats[word] = value;
    else this.#words[word] = value;
  }

  write(views: Views, address: number): void {
    views.i32.set(this.#words, address / 4);
  }
}

function missing(name: string): never {
  throw new Error(`the core's structs have no field ${name}`);
}
