// Example logic: sequences to batches: shuffled anew for each epoch, padded to the longest.
import { shuffled } from '../random.mjs';
import { PAD_ID } from './vocabulary.mjs';

/**
 * Sequences of one batch, filled up to the longest.
 * @param {readonly (readonly number[])[]} sequences
 * @param {number} [length] at least that of the longest; default: that
 * @returns {{ ids: Int32Array, shape: [number, number], lengths: Int32Array }} ids [B,L]
 */
export function padded(sequences, length = Math.max(0, ...sequences.map((s) => s.length))) {
  const ids = new Int32Array(sequences.length * length).fill(PAD_ID);
  sequences.forEach((sequence, row) => {
    if (sequence.length > length) {
      throw new RangeError(`a sequence of ${sequence.length} does not fit into ${length}`);
    }
    ids.set(sequence, row * length);
  });
  return {
    ids,
    shape: [sequences.length, length],
    lengths: Int32Array.from(sequences, (sequence) => sequence.length),
  };
}

/**
 * One epoch's batches: every item exactly once, in an order of its own. Neighbours in length are not put together: that would save
 * padding, but a batch of nothing but short phrases pulls the model its own way.
 * @template T
 * @param {readonly T[]} items
 * @param {number} size items of a batch; the last may be smaller
 * @param {number} seed another one for each epoch
 * @returns {T[][]}
 */
export function epochBatches(items, size, seed) {
  if (!(size >= 1)) throw new RangeError(`a batch needs at least one item, got ${size}`);
  const mixed = shuffled(items, seed);
  const batches = [];
  for (let at = 0; at < mixed.length; at += size) batches.push(mixed.slice(at, at + size));
  return batches;
}
