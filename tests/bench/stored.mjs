// Bench: numbers of rivals that no Node process can run, measured once by hand and kept in stored/. They are shown beside a run,
// labelled, and never compared with it round by round.
import { readFileSync } from 'node:fs';

const torch = JSON.parse(
  readFileSync(new URL('stored/torch-training.json', import.meta.url), 'utf8'),
);

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Entries as the suite has them, without rounds. One that was measured with other sizes says so.
 * @param {import('./shapes.mjs').Shape} shape
 * @param {number} threads
 * @returns {import('./suite.mjs').Entry[]}
 */
export function storedEntries(shape, threads) {
  if (shape.kind !== 'training') return [];
  const { config, batch, sourceLength, targetLength } = shape;
  const label = `PyTorch ${torch.torch.split('+')[0]}, CPU (stored)`;
  const about = `measured on ${torch.machine}, ${torch.date}, not in this run`;
  const found = torch.results.filter((one) => one.name === shape.name && one.threads === threads);
  return found.map((one) => {
    const entry = { id: 'pytorch', label, about, threads, times: [], work: shape, stored: true };
    if (!same(one.sizes, { config, batch, sourceLength, targetLength }))
      return {
        ...entry,
        failure: 'stored for other sizes; scripts/measure-torch-training.py anew',
      };
    return { ...entry, times: [one.milliseconds], peakBytes: one.peakBytes };
  });
}
