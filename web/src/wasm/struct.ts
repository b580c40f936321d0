// Wasm: fills the core's argument structs by the layout that the core publishes. No offset stands in TypeScript.
import type { Layout } from './glue.js';
import type { Views } from './heap.js';

/** Where a field lies: a word, or as many as it has fields of its own, in their order. */
interface Field {
  name: string;
  words: number[];
  isFloat: boolean;
}

/**
 * A struct is filled on this side (`clear`, then `set`) and copied to the heap at once (`write`). What is not set is 0, null
 * for a pointer. One object serves all calls: nothing is allocated for a call.
 */
export class Struct {
  readonly size: number;
  readonly #layout: Layout;
  readonly #fields = new Map<string, Field>();
  // Calls set the same fields in the same order: what the last one set when it was here is looked at before the map is.
  readonly #lastSet: Field[] = [];
  #set = 0;
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
  with(field: string, inner: string): void {
    this.#add((this.#layout[inner] as Layout[string]).fields, this.offsetOf(field));
  }

  #add(fields: Layout[string]['fields'], base: number): void {
    for (const [name, [offset, kind]] of Object.entries(fields)) {
      const word = (base + offset) / 4;
      const isFloat = kind === 'f32';
      this.#fields.set(name, { name, words: [word], isFloat });
      const dot = name.lastIndexOf('.');
      if (dot < 0) continue;
      const outer = name.slice(0, dot);
      const { words = [] } = this.#fields.get(outer) ?? {};
      this.#fields.set(outer, { name: outer, words: [...words, word], isFloat });
    }
  }

  #field(name: string): Field {
    const field = this.#fields.get(name);
    if (field === undefined) throw new Error(`the core's structs have no field ${name}`);
    return field;
  }

  #next(name: string): Field {
    const at = this.#set++;
    const last = this.#lastSet[at];
    if (last?.name === name) return last;
    return (this.#lastSet[at] = this.#field(name));
  }

  /** Where a field lies, counted from the struct's start. */
  offsetOf(name: string): number {
    return (this.#field(name).words[0] as number) * 4;
  }

  clear(): void {
    this.#words.fill(0);
    this.#set = 0;
  }

  set(name: string, value: number): void {
    const { words, isFloat } = this.#next(name);
    const word = words[0] as number;
    // An Int32Array takes numbers modulo 2^32, which is right for addresses and unsigned words too.
    if (isFloat) this.#floats[word] = value;
    else this.#words[word] = value;
  }

  /** Sets a field of strides. */
  setStrides(name: string, strides: readonly number[]): void {
    const { words } = this.#next(name);
    for (let i = 0; i < strides.length; i++) this.#words[words[i] as number] = strides[i] as number;
  }

  write(views: Views, address: number): void {
    views.i32.set(this.#words, address / 4);
  }
}
