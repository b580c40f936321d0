// Wasm: what a call stages in the heap: its struct, the arrays that go in and those that come out, one after the other in one
// block.
import { callersName, joined, type Response } from '../request.js';
import { checkAttached } from '../validation/fixed.js';
import { alignUp } from './heap.js';
import type { Struct } from './struct.js';

/** An array that goes in, and the field that is to point at it. */
export interface Input {
  field: string;
  array: Float32Array | Int32Array | Uint8Array;
  /** Counted from the block's start, like every place. */
  place: number;
  /** Whether another field's array is this one, so that it lies there already. */
  twin: boolean;
}

/** An array of floats that comes out, and the field that is to point at its place. */
export interface Output {
  field: string;
  result: Exclude<keyof Response, 'parameters' | 'lengths' | 'tensors'>;
  length: number;
  place: number;
}

/** An argument's name of its field's: `key_padding_mask` is `keyPaddingMask`. */
function argumentOf(field: string): string {
  const name = field.slice(field.lastIndexOf('.') + 1);
  return name.replaceAll(/_(\w)/gu, (_, letter: string) => letter.toUpperCase());
}

export class Staging {
  readonly #struct: Struct;
  readonly inputs: Input[] = [];
  readonly outputs: Output[] = [];
  /** Of the block. */
  bytes: number;

  /** The struct comes first. It is cleared. */
  constructor(struct: Struct) {
    this.#struct = struct;
    struct.clear();
    this.bytes = alignUp(struct.size);
  }

  /** Sets a field of the struct. */
  set(field: string, value: number): void {
    this.#struct.set(field, value);
  }

  setStrides(field: string, strides: readonly number[]): void {
    this.#struct.setStrides(field, strides);
  }

  /** Without an array the field stays null. */
  input(field: string, array: Input['array'] | undefined): void {
    if (array === undefined) return;
    if (array.length === 0) checkAttached(callersName(argumentOf(field)), array);
    // The same array given twice (a layer's query, key and value) is staged once.
    for (let i = 0; i < this.inputs.length; i++) {
      const other = this.inputs[i] as Input;
      if (other.array === array) {
        this.inputs.push({ field, array, place: other.place, twin: true });
        return;
      }
    }
    this.inputs.push({ field, array, place: this.#take(array.byteLength), twin: false });
  }

  /** The same for arrays that go in one after the other. */
  inputJoined(field: string, arrays: readonly Float32Array[]): void {
    arrays.forEach((array, i) => {
      if (array.length === 0) checkAttached(`${callersName(argumentOf(field))}[${i}]`, array);
    });
    this.input(field, joined(arrays));
  }

  output(field: string, result: Output['result'], length: number): void {
    this.outputs.push({ field, result, length, place: this.#take(length * 4) });
  }

  #take(bytes: number): number {
    const place = this.bytes;
    this.bytes += alignUp(bytes);
    return place;
  }
}
