// Wasm: a rotary embedding's settings as fields of the core's structs: a call's, and the configurations of caches, layers and
// Transformers, which the core takes copies of.
import type { RotarySettings } from '../request.js';
import { alignUp, type Heap } from './heap.js';
import type { Struct } from './struct.js';

/** Sets the numbers in the struct's field `rope`; none without settings. */
export function setRope(target: Pick<Struct, 'set'>, rope: RotarySettings | undefined): void {
  if (rope === undefined) return;
  const { scaling, tables } = rope;
  target.set('rope.dim', rope.dim);
  target.set('rope.base', rope.base);
  target.set('rope.interleaved', rope.interleaved ? 1 : 0);
  target.set('rope.table_rows', tables?.rows ?? 0);
  target.set('rope.scaling.rule', scaling?.rule ?? 0);
  target.set('rope.scaling.factor', scaling?.factor ?? 1);
  target.set('rope.scaling.original_length', scaling?.originalLength ?? 0);
  target.set('rope.scaling.low', scaling?.low ?? 1);
  target.set('rope.scaling.high', scaling?.high ?? 4);
  target.set('rope.scaling.magnitude', scaling?.magnitude ?? 1);
}

/** The arrays that belong to the settings, by their fields. */
export function ropeArrays(rope: RotarySettings | undefined): [string, Float32Array][] {
  const { scaling, tables } = rope ?? {};
  const arrays: [string, Float32Array | undefined][] = [
    ['rope.cos', tables?.cos],
    ['rope.sin', tables?.sin],
    ['rope.scaling.short_factors', scaling?.shortFactors],
    ['rope.scaling.long_factors', scaling?.longFactors],
  ];
  return arrays.filter((entry): entry is [string, Float32Array] => entry[1] !== undefined);
}

/** Writes a configuration, all but its `rope` set, to the heap for as long as `use` takes. */
export function withConfig(
  heap: Heap,
  struct: Struct,
  rope: RotarySettings | undefined,
  what: string,
  use: (address: number) => void,
): void {
  setRope(struct, rope);
  const arrays = ropeArrays(rope);
  const bytes = arrays.reduce(
    (sum, [, { byteLength }]) => sum + alignUp(byteLength),
    alignUp(struct.size),
  );
  heap.withBlock(bytes, what, (address) => {
    let at = address + alignUp(struct.size);
    for (const [field, array] of arrays) {
      struct.set(field, at);
      heap.write(array, at);
      at += alignUp(array.byteLength);
    }
    struct.write(heap.views(), address);
    use(address);
  });
}
