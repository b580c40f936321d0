// Between callers and what computes later: copies of what a request names.
import { mapArrays } from './request.js';
import { residentOf } from './resident.js';
import { isFloat32Array } from './validation/arrays.js';
import { checkAttached } from './validation/fixed.js';

/** A copy that the caller's later writes do not reach; what stands for a tensor on the GPU stays what it is. */
export function snapshot<T extends object>(request: T): T {
  const copies = new Map<unknown, unknown>();
  return mapArrays(request, (array, name) => {
    if (residentOf(array) !== undefined) return array;
    let copy = copies.get(array) as typeof array | undefined;
    if (copy === undefined) {
      copy = copyOf(name, array) as typeof array;
      copies.set(array, copy);
    }
    return copy;
  });
}

function copyOf(
  name: string,
  array: Float32Array | Int32Array | Uint8Array,
): Float32Array | Int32Array | Uint8Array {
  if (array.length === 0) checkAttached(name, array);
  if (array.BYTES_PER_ELEMENT === 1) return new Uint8Array(array);
  return isFloat32Array(array) ? new Float32Array(array) : new Int32Array(array);
}
