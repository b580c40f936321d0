// Wasm: what lives in the core, by the numbers that its owners chose: layers, caches, Transformers, decodings. One map for all.
import { disposed } from '../errors.js';

/** What an object is called in messages. */
export type Kind = 'layer' | 'cache' | 'transformer' | 'decoding';

interface Entry {
  kind: Kind;
  address: number;
  destroy: (address: number) => void;
  /** What this side has to know of it. */
  details: unknown;
}

export class Registry {
  readonly #entries = new Map<number, Entry>();

  /** Keeps an object that the core made. `address`: as a binding gives it, which may be negative above 2 GiB. */
  add(
    kind: Kind,
    number: number,
    address: number,
    destroy: Entry['destroy'],
    details?: unknown,
  ): void {
    this.#entries.set(number, { kind, address: address >>> 0, destroy, details });
  }

  /** The address of an object. Throws DISPOSED when there is none of that number and kind. */
  addressOf(kind: Kind, number: number): number {
    return this.#get(kind, number).address;
  }

  /** What was given to `add`. */
  detailsOf<T>(kind: Kind, number: number): T {
    return this.#get(kind, number).details as T;
  }

  /** Frees an object, if it is there. */
  destroy(number: number): void {
    const entry = this.#entries.get(number);
    this.#entries.delete(number);
    entry?.destroy(entry.address);
  }

  #get(kind: Kind, number: number): Entry {
    const entry = this.#entries.get(number);
    if (entry?.kind !== kind) throw disposed(`the ${kind}`);
    return entry;
  }
}
