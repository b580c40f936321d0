// Bench: medians, and speeds in the unit of the shape.

export function median(values) {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** How far the rounds lie from each other: (max − min) / median. */
export function spread(values) {
  return (Math.max(...values) - Math.min(...values)) / median(values);
}

/**
 * The median over rounds of how many times faster `a` was than `b` in the same round: drift of a shared machine cancels.
 * @param {number[]} a milliseconds, one a round
 * @param {number[]} b
 */
export function speedRatio(a, b) {
  const rounds = Math.min(a.length, b.length);
  return median(Array.from({ length: rounds }, (_, i) => b[i] / a[i]));
}

/** The share of a ceiling: the rate of work in `times` over the rate of the ceiling's own, median over rounds. */
export function shareOfCeiling(times, work, ceilingTimes, ceilingWork) {
  return speedRatio(times, ceilingTimes) * (work / ceilingWork);
}

/** @returns {{ value: number, unit: string }} GFLOP/s; decoding, GB/s of keys and values; tiny calls, µs; a cache's and training, steps/s */
export function speedOf(kind, ms, { flops, bytes }) {
  if (kind === 'decode') return { value: bytes / ms / 1e6, unit: 'GB/s' };
  if (kind === 'step' || kind === 'training') return { value: 1e3 / ms, unit: 'steps/s' };
  if (kind === 'tiny') return { value: ms * 1e3, unit: 'µs' };
  return { value: flops / ms / 1e6, unit: 'GFLOP/s' };
}
