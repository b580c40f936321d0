// Wasm: Transformers in the heap: made, their tensors set and read.
import { invalidShape, invalidValue } from '../errors.js';
import type {
  CompleteTensors as Complete,
  NamedArray,
  Response,
  TransformerRequest,
  TransformerStepRequest,
} from '../request.js';
import { product } from '../validation/shapes.js';
import type { Bindings } from './glue.js';
import type { CoreParts } from './objects.js';
import { withConfig } from './rope.js';
import { Struct } from './struct.js';

export class Transformers {
  readonly #core: CoreParts;
  readonly #configStruct: Struct;

  constructor(core: CoreParts) {
    this.#core = core;
    this.#configStruct = new Struct(core.layout, 'TransformerConfig');
  }

  run(request: TransformerRequest): Response {
    switch (request.op) {
      case 'createTransformer':
        this.#create(request);
        return {};
      case 'setTensors':
        this.#setTensors(request.model, request.tensors, request.complete);
        return {};
      case 'getTensors':
        return { tensors: this.#tensorsOf(request.model, request.moments) };
    }
  }

  #create({
    model,
    fields,
    rope,
    moments,
  }: Extract<TransformerRequest, { op: 'createTransformer' }>): void {
    const { bindings, heap, registry, error } = this.#core;
    const struct = this.#configStruct;
    struct.clear();
    for (const [field, value] of Object.entries(fields)) struct.set(field, value);
    withConfig(heap, struct, rope, 'transformer', (address) => {
      const created = bindings.createTransformer(address, moments);
      if (created === 0) throw error('transformer');
      registry.add('transformer', model, created, (at) => bindings.destroyTransformer(at));
    });
  }

  /** Which parameters decay, in the core's order, where not all do: 1 for each that does. */
  decaysOf({ model, noDecay }: TransformerStepRequest): Uint8Array | undefined {
    if (noDecay === undefined) return undefined;
    const places = this.#places(model);
    const names = new Set(places.map(({ name }) => name));
    // What has moments is learnt; batch norms' buffers are not.
    const parameters = places.filter(({ name, moment }) => !moment && names.has(`first.${name}`));
    return Uint8Array.from(parameters, ({ name, shape }) =>
      Number(noDecay === 'vectors' ? shape.length >= 2 : name.search(noDecay) < 0),
    );
  }

  #places(model: number): ReturnType<Bindings['transformerTensors']> {
    const { bindings, registry } = this.#core;
    return bindings.transformerTensors(registry.addressOf('transformer', model));
  }

  // All of them, in the core's order.
  #tensorsOf(model: number, moments: boolean): NamedArray[] {
    const places = this.#places(model).filter(({ moment }) => moments || !moment);
    return places.map(({ name, shape, address }) => {
      return { name, shape, data: this.#core.heap.read(address >>> 0, product(shape)) };
    });
  }

  // All or none: everything is checked before the first is set.
  #setTensors(model: number, tensors: readonly NamedArray[], complete: Complete | undefined): void {
    const { heap } = this.#core;
    const all = this.#places(model);
    const places = new Map(all.map((place) => [place.name, place]));
    for (const { name, shape } of tensors) {
      const wanted = places.get(name)?.shape;
      if (wanted === undefined) {
        throw invalidValue(
          complete === undefined
            ? `${name}: this model has no parameter of that name`
            : `${complete.what}: this model has no ${name}`,
        );
      }
      if (wanted.length !== shape.length || wanted.some((size, axis) => size !== shape[axis]))
        throw invalidShape(`${name}: shape [${wanted}] wanted, got [${shape}]`);
    }
    const given = new Set(tensors.map(({ name }) => name));
    const begins = (name: string, prefixes: readonly string[] | undefined): boolean =>
      prefixes?.some((prefix) => name.startsWith(prefix)) === true;
    const missing = all.filter(
      ({ name, moment }) =>
        !given.has(name) &&
        (moment ? complete?.moments === 'given' : begins(name, complete?.prefixes)),
    );
    const isZero = ({ name }: { name: string }): boolean =>
      name.endsWith('bias') && begins(name, complete?.withoutBiases);
    const wanting = missing.find((place) => !isZero(place));
    if (wanting !== undefined) throw invalidValue(`${complete?.what}: ${wanting.name} is missing`);
    for (const { name, data } of tensors)
      heap.write(data, (places.get(name) as { address: number }).address >>> 0);
    const clear = ({ address, shape }: { address: number; shape: number[] }): void => {
      const at = (address >>> 0) / 4;
      heap.views().f32.fill(0, at, at + product(shape));
    };
    missing.forEach(clear);
    if (complete?.moments !== 'anew') return;
    all.filter(({ moment }) => moment).forEach(clear);
  }
}
