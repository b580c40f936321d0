// Bench: measured times to what is shown: speeds, ratios to headwise, shares of the ceiling. Every report reads this.
import { median, shareOfCeiling, speedOf, speedRatio, spread } from '../statistics.mjs';

/**
 * One row a contender, the ceilings among them.
 * @param {{ shape: object, threads: number, entries: import('../suite.mjs').Entry[] }} result
 */
export function rowsOf({ shape, threads, entries }) {
  const find = (id, count = threads) =>
    entries.find((entry) => entry.id === id && entry.threads === count);
  const headwise = find('headwise');
  return entries.map((entry) => {
    const { id, label, about, maxDifference, failure, notApplicable, times, peakBytes } = entry;
    const row = { id, label, threads: entry.threads, about, maxDifference, failure, notApplicable };
    row.peakBytes = peakBytes;
    row.stored = entry.stored;
    if (times.length === 0) return row;
    row.ms = median(times);
    if (!entry.stored) row.spread = spread(times);
    row.rounds = times.length;
    const isCeiling = id === 'read' || id.startsWith('fma');
    const kind = id === 'read' ? 'decode' : id.startsWith('fma') ? 'attention' : shape.kind;
    const { value, unit } = speedOf(kind, row.ms, entry.work);
    row.speed = value;
    row.unit = unit;
    const ceiling = ceilingOf(entry, shape, find);
    if (!isCeiling && ceiling?.times.length > 0) {
      const work = ['decode', 'step'].includes(shape.kind) ? 'bytes' : 'flops';
      row.share = shareOfCeiling(times, entry.work[work], ceiling.times, ceiling.work[work]);
      if (shape.recomputed)
        row.shareWithoutRecomputed = row.share * (1 - shape.recomputed / shape.flops);
    }
    // How many times faster headwise is, in the same rounds.
    if (!isCeiling && !entry.stored && entry !== headwise && headwise?.times.length > 0)
      row.headwiseFaster = speedRatio(headwise.times, times);
    return row;
  });
}

// The ceiling of the entry's own thread count and variant; none was measured for headwise with one thread among many.
function ceilingOf(entry, shape, find) {
  if (['tiny', 'training'].includes(shape.kind)) return undefined;
  if (['decode', 'step'].includes(shape.kind)) return find('read', entry.threads);
  return find(entry.id === 'headwise-simd' ? 'fma-simd' : 'fma', entry.threads);
}
