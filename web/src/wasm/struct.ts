// Wasm: writes the core's argument structs in the heap by the layout that the core publishes. No offset stands in TypeScript.
import type { Layout } from './glue.js';
import type { Views } from './heap.js';

/** Values by field name; what is not given is 0 (null for a pointer). */
export type Fields = Record<string, number>;

interface Slot {
  word: number;
  isFloat: boolean;
}

export class Struct {
  readonly size: number;
  readonly #slots = new Map<string, Slot>();

  constructor(layout: Layout, name: string) {
    const { size, fields } = layout[name] as Layout[string];
    this.size = size;
    this.#add(fields, 0);
  }

  /** The fields of a struct that lies inside this one, by their own names. */
  with(layout: Layout, field: string, inner: string): this {
    const { word } = this.#slot(field);
    this.#add((layout[inner] as Layout[string]).fields, word * 4);
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

  write(views: Views, address: number, fields: Fields): void {
    const start = address / 4;
    views.i32.fill(0, start, start + this.size / 4);
    for (const name in fields) {
      const { word, isFloat } = this.#slot(name);
      // Storing a number in an Int32Array takes it modulo 2^32, which is right for addresses too.
      (isFloat ? views.f32 : views.i32)[start + word] = fields[name] as number;
    }
  }
}
