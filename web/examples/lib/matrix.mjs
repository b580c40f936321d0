// Example logic: moving numbers about without computing: reshapes, the swap of two axes, slices, comparisons.

/**
 * A tensor as the examples pass it on: row-major, like every tensor of the package.
 * @typedef {{ data: Float32Array, shape: readonly number[] }} Numbers
 */

/**
 * The same numbers under another shape.
 * @param {Numbers} tensor
 * @param {number[]} shape
 * @returns {{ data: Float32Array, shape: number[] }}
 */
export function reshape(tensor, shape) {
  const size = shape.reduce((product, n) => product * n, 1);
  if (size !== tensor.data.length) {
    throw new RangeError(`cannot reshape ${tensor.data.length} numbers to (${shape.join(', ')})`);
  }
  return { data: tensor.data, shape };
}

/**
 * Swaps the two middle axes: [B,L,H,D] ↔ [B,H,L,D].
 * @param {Numbers} tensor
 * @returns {{ data: Float32Array, shape: number[] }}
 */
export function swapHeads(tensor) {
  const [batch, first, second, size] = tensor.shape;
  const data = new Float32Array(tensor.data.length);
  for (let b = 0; b < batch; b++) {
    for (let i = 0; i < first; i++) {
      for (let j = 0; j < second; j++) {
        const from = ((b * first + i) * second + j) * size;
        data.set(tensor.data.subarray(from, from + size), ((b * second + j) * first + i) * size);
      }
    }
  }
  return { data, shape: [batch, second, first, size] };
}

/**
 * The sum of two tensors of one shape.
 * @param {Numbers} a
 * @param {Numbers} b
 * @returns {{ data: Float32Array, shape: readonly number[] }}
 */
export function add(a, b) {
  return { data: a.data.map((value, i) => value + b.data[i]), shape: a.shape };
}

/**
 * Matrix `head` of batch 0 of a tensor [B,H,rows,columns].
 * @param {Numbers} tensor
 * @param {number} head
 * @returns {Float32Array} a view
 */
export function headOf(tensor, head) {
  const size = tensor.shape[2] * tensor.shape[3];
  return tensor.data.subarray(head * size, (head + 1) * size);
}

/**
 * The mean over the heads of batch 0 of a tensor [B,H,rows,columns].
 * @param {Numbers} tensor
 * @returns {Float32Array}
 */
export function meanOfHeads(tensor) {
  const heads = tensor.shape[1];
  const size = tensor.shape[2] * tensor.shape[3];
  const mean = new Float32Array(size);
  for (let i = 0; i < size; i++) {
    let sum = 0;
    for (let h = 0; h < heads; h++) sum += tensor.data[h * size + i];
    mean[i] = sum / heads;
  }
  return mean;
}

/**
 * The largest absolute difference of two arrays of one length; two equal infinities differ by 0, NaN by infinity.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number}
 */
export function largestDifference(a, b) {
  if (a.length !== b.length) throw new RangeError(`${a.length} numbers against ${b.length}`);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = a[i] === b[i] ? 0 : Math.abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
  }
  return largest;
}
