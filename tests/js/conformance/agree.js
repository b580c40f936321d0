// Conformance: whether what an operator gave is what its project says.

import { expectClose } from '../compare.js';
import { float16Data } from '../tolerances.js';
import { numbersOf } from './read.js';

/** Whether a case is one of attention's, which the GPU can do. */
export const attends = ({ op }) =>
  ['Attention', 'MultiHeadAttention', 'GroupQueryAttention'].includes(op);

/** `results`: tensors { type, shape, data } by output slot. `float32`: the tolerance where the case names none. */
export function expectAgreement(results, conformance, float32) {
  const { atol, suggested_atol: suggested } = conformance;
  for (const [slot, expected] of Object.entries(conformance.outputs)) {
    const where = `${conformance.name}, output ${slot}`;
    const { type, shape } = results[slot];
    expect({ where, type, shape }).toEqual({ where, type: expected.type, shape: expected.dims });
    const base = type === 'float16' ? float16Data : float32;
    const tolerance = { ...base, absolute: Math.max(base.absolute, atol ?? suggested ?? 0) };
    const [got, wanted] = [results[slot], expected].map(numbersOf);
    expectClose(got, wanted, tolerance, where);
  }
}
