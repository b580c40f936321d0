// Wasm: what Transformers keep of targets that they read token by token.
import { invalidValue } from '../errors.js';
import type { DecodingRequest, Response, TransformerDecodeRequest } from '../request.js';
import type { CoreParts } from './objects.js';

export class Decodings {
  readonly #core: CoreParts;

  constructor(core: CoreParts) {
    this.#core = core;
  }

  run(request: DecodingRequest): Response {
    const { bindings, heap, registry, error } = this.#core;
    switch (request.op) {
      case 'createDecoding': {
        const { decoding, rows, capacity } = request;
        const model = registry.addressOf('transformer', request.model);
        const address = bindings.createDecoding(model, rows, capacity);
        if (address === 0) throw error('the decoding');
        registry.add('decoding', decoding, address, (at) => bindings.destroyDecoding(at));
        return {};
      }
      case 'selectDecoding': {
        const { rows } = request;
        const decoding = registry.addressOf('decoding', request.decoding);
        return heap.withBlock(rows.byteLength, 'the decoding', (address) => {
          heap.write(rows, address);
          const status = bindings.selectDecoding(decoding, address, rows.length);
          if (status !== 0) throw error('the decoding');
          return {};
        });
      }
    }
  }

  /** The address of the decoding that reads tokens, if it still is what the call was made for. */
  addressFor({ decoding, start }: TransformerDecodeRequest): number {
    const { bindings, registry } = this.#core;
    const address = registry.addressOf('decoding', decoding);
    if (bindings.decodingLength(address) !== start) {
      throw invalidValue(
        'tokens: an earlier call on this decoding has failed, so these would not stand where they belong',
      );
    }
    return address;
  }
}
