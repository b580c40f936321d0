// Bench: a cache of the package, as a user decodes with it: steps at a given length, and a prompt in chunks.
import { rowsOf } from '../inputs.mjs';

/** Makes what one run does; `dispose` lets go of the cache. */
export async function cacheCall(engine, dtype, offMainThread, shape, inputs) {
  const { B, H, G, L, S, D, kind } = shape;
  const cache = engine.createKVCache({ batch: B, numKvHeads: G, headDim: D, capacity: S, dtype });
  const part = (data, heads, rows, first, count) => ({
    data: rowsOf(data, B * heads, rows, D, first, count),
    shape: [B, heads, count, D],
  });
  const tokens = (first, count) =>
    [inputs.k, inputs.v].map((data) => part(data, G, S, first, count));
  const dispose = () => cache.dispose();

  if (kind === 'step') {
    const before = 256; // at a time, so that their copies are small
    for (let first = 0; first < S - 1; first += before)
      await cache.append(...tokens(first, Math.min(before, S - 1 - first)));
    const call = [{ data: inputs.q, shape: [B, H, 1, D] }, ...tokens(S - 1, 1)];
    return {
      dispose,
      run: offMainThread
        ? async () => {
            const result = await cache.attend(...call);
            await cache.trim(S - 1);
            return result;
          }
        : () => {
            const result = cache.attendSync(...call);
            cache.trimSync(S - 1);
            return result;
          },
    };
  }

  const chunks = [];
  for (let first = 0; first < L; first += shape.chunk)
    chunks.push([part(inputs.q, H, L, first, shape.chunk), ...tokens(first, shape.chunk)]);
  return {
    dispose,
    run: offMainThread
      ? async () => {
          await cache.reset();
          let last;
          for (const chunk of chunks) last = await cache.attend(...chunk);
          return last;
        }
      : () => {
          cache.resetSync();
          let last;
          for (const chunk of chunks) last = cache.attendSync(...chunk);
          return last;
        },
  };
}
