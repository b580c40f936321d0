// Tests: attention problems whose answer can be worked out by hand. All are one batch and one head, [1,1,length,size].

/** [1,1,length,size] from rows, a row being a number or an array. */
export function rows(list, size) {
  const flat = list.flatMap((row) => row);
  const width = size ?? (list.length > 0 ? flat.length / list.length : 1);
  return { data: Float32Array.from(flat), shape: [1, 1, list.length, width] };
}

/** As many query rows of zeros: equal weights, so that the output is the mean of the visible values. */
export const zeros = (length, size = 1) => rows(Array(length).fill(Array(size).fill(0)), size);

/** `{ q, k, v }` with weights w_j / Σw: D = 1, q = 1, scale 1, k_j = ln w_j. */
export function logWeights(w, v, queries = 1) {
  return { q: rows(Array(queries).fill(1)), k: rows(w.map(Math.log)), v: rows(v) };
}

/** `{ q, k, v }` with equal weights. */
export const uniform = (v, queries = 1) => ({ q: zeros(queries), k: zeros(v.length), v: rows(v) });

/** `{ q, k, v }` with these scores (D = 1, q = 1, scale 1). */
export const scores = (s, v) => ({ q: rows([1]), k: rows(s), v: rows(v) });

/** The numbers of a tensor. */
export const numbers = (tensor) => Array.from(tensor.data);
