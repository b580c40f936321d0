// Wasm: what Transformers keep of targets that they read token by token, by the numbers that their owners chose.
import { disposed, invalidValue } from '../errors.js';
import type { DecodingRequest, Response, TransformerDecodeRequest } from '../request.js';
import type { Bindings } from './glue.js';
import type { Heap } from './heap.js';

export class Decodings {
  readonly #bindings: Bindings;
  readonly #heap: Heap;
  readonly #error: (what: string) => Error;
  readonly #addresses = new Map<number, number>();

  /** `error` makes an error of the core's last status. */
  constructor(bindings: Bindings, heap: Heap, error: (what: string) => Error) {
    this.#bindings = bindings;
    this.#heap = heap;
    this.#error = error;
  }

  run(request: DecodingRequest, modelOf: (model: number) => number): Response {
    const { decoding } = request;
    switch (request.op) {
      case 'createDecoding': {
        const { model, rows, capacity } = request;
        const address = this.#bindings.createDecoding(modelOf(model), rows, capacity) >>> 0;
        if (address === 0) throw this.#error('the decoding');
        this.#addresses.set(decoding, address);
        return {};
      }
      case 'selectDecoding': {
        const { rows } = request;
        const address = this.#address(decoding);
        return this.#heap.withBlock(rows.byteLength, 'the decoding', (block) => {
          this.#heap.views().i32.set(rows, block / 4);
          const status = this.#bindings.selectDecoding(address, block, rows.length);
          if (status !== 0) throw this.#error('the decoding');
          return {};
        });
      }
      case 'destroyDecoding': {
        const address = this.#addresses.get(decoding);
        if (address !== undefined) this.#bindings.destroyDecoding(address);
        this.#addresses.delete(decoding);
        return {};
      }
    }
  }

  /** The address of the decoding that reads tokens, if it still is what the call was made for. */
  addressFor({ decoding, start }: TransformerDecodeRequest): number {
    const address = this.#address(decoding);
    if (this.#bindings.decodingLength(address) !== start) {
      throw invalidValue(
        'tokens: an earlier call on this decoding has failed, so these would not stand where they belong',
      );
    }
    return address;
  }

  #address(decoding: number): number {
    const address = this.#addresses.get(decoding);
    if (address === undefined) throw disposed('the decoding');
    return address;
  }
}
