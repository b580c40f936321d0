// Bench: the computations that are measured. One entry a shape: its name, its sizes (B is 1 but for caches), its options, and
// how much work it is. `kind` says which inputs it has (inputs.mjs) and in which unit its speed is told (statistics.mjs).

import { readFileSync } from 'node:fs';

/**
 * @typedef {object} Shape
 * @property {string} name
 * @property {'attention' | 'backward' | 'decode' | 'tiny' | 'layer' | 'step' | 'prefill' | 'training'} kind step: one token
 *   appended to a cache of S − 1, then attention; prefill: L tokens into an empty cache, `chunk` at a time; training: a step of a
 *   model of training-models.json, whose fields the shape then has instead of sizes
 * @property {number} B
 * @property {number} H query heads
 * @property {number} G key/value heads
 * @property {number} L queries
 * @property {number} S keys
 * @property {number} D size of a head
 * @property {number} [E] model size, of a layer
 * @property {boolean} causal
 * @property {number} [window] keys that a query sees, itself included, with `causal`
 * @property {number} [chunk]
 * @property {boolean} quick measured with --quick too
 * @property {number} flops floating-point operations: 2 for a multiply-add, hidden pairs of query and key not counted
 * @property {number} [recomputed] flops that backward spends on having the scores once more
 * @property {number} bytes keys and values, read at least once
 */

/** Pairs of query and key that see each other, in one head. */
export function visiblePairs({ L, S, causal, window }) {
  if (!causal) return L * S;
  let pairs = 0;
  for (let i = 0; i < L; i++) pairs += Math.min(i + S - L + 1, S, window ?? S);
  return pairs;
}

/** @returns {Shape} */
function shape(name, kind, sizes, options = {}) {
  const { B = 1, H, L, S, D, G = H, E } = sizes;
  const filled = { name, kind, B, H, G, L, S, D, E, causal: false, quick: false, ...options };
  // A product of queries and keys or of weights and values. Forward there are two; backward dO·Vᵀ and those to dV, dQ and dK,
  // and the scores' once more.
  const product = 2 * B * H * D * visiblePairs(filled);
  const attention = (kind === 'backward' ? 5 : 2) * product;
  if (kind === 'backward') filled.recomputed = product;
  // Query, key, value and output projections are E × E each.
  const projections = kind === 'layer' ? 4 * 2 * L * E * E : 0;
  return { ...filled, flops: attention + projections, bytes: 4 * 2 * B * G * S * D };
}

// From JSON, which scripts/measure-torch-training.py reads as well.
const training = JSON.parse(
  readFileSync(new URL('training-models.json', import.meta.url), 'utf8'),
).map((model) => ({ ...model, kind: 'training', flops: 0, bytes: 0 }));

const square = (H, L, D, options) =>
  shape(`${H}×${L}×${L}×${D}`, 'attention', { H, L, S: L, D }, options);
const causal = (H, L, D, options) =>
  shape(`${H}×${L}×${L}×${D} causal`, 'attention', { H, L, S: L, D }, { causal: true, ...options });

const step = (B, H, G, S, options) =>
  shape(
    `step of ${B > 1 ? `${B} × ` : ''}${H}${G < H ? `/${G}` : ''} heads, S ${S}, D 128`,
    'step',
    { B, H, G, L: 1, S, D: 128 },
    options,
  );

/** The memory claim's shape; measured once, apart from the others (cold.mjs). */
export const longShape = square(8, 16384, 64);

/** @type {Shape[]} */
export const shapes = [
  square(12, 128, 64, { quick: true }),
  square(12, 512, 64, { quick: true }),
  square(8, 1024, 64, { quick: true }),
  square(8, 2048, 64),
  square(8, 4096, 64),
  square(8, 1024, 128, { quick: true }),
  causal(12, 128, 64),
  causal(12, 512, 64),
  causal(8, 1024, 64, { quick: true }),
  causal(8, 2048, 64),
  causal(8, 4096, 64),
  causal(8, 1024, 128),
  shape('32/8×1024×1024×128 grouped', 'attention', { H: 32, G: 8, L: 1024, S: 1024, D: 128 }),
  shape(
    '8×4096×4096×64 window 256',
    'attention',
    { H: 8, L: 4096, S: 4096, D: 64 },
    { causal: true, window: 256 },
  ),
  shape('32×1×2048×128 decoding', 'decode', { H: 32, L: 1, S: 2048, D: 128 }, { quick: true }),
  shape('32×1×16384×128 decoding', 'decode', { H: 32, L: 1, S: 16384, D: 128 }),
  shape('2×4×4×3 tiny', 'tiny', { H: 2, L: 4, S: 4, D: 3 }, { quick: true }),
  shape(
    'layer E 512, 8 heads, L 512',
    'layer',
    { E: 512, H: 8, L: 512, S: 512, D: 64 },
    { quick: true },
  ),
  step(1, 32, 8, 512),
  step(1, 32, 8, 2048, { quick: true }),
  step(1, 32, 8, 8192),
  step(1, 32, 8, 16384),
  step(1, 32, 8, 32768),
  step(1, 32, 32, 512),
  step(1, 32, 32, 2048),
  step(1, 32, 32, 16384),
  step(8, 32, 8, 512, { quick: true }),
  step(8, 32, 8, 2048),
  step(8, 32, 8, 8192),
  step(8, 32, 32, 512),
  step(8, 32, 32, 2048),
  shape(
    'prefill of 2048 in chunks of 256, 32/8 heads, D 128',
    'prefill',
    { H: 32, G: 8, L: 2048, S: 2048, D: 128 },
    { causal: true, chunk: 256, quick: true },
  ),
  shape('layer E 768, 12 heads, L 128', 'layer', { E: 768, H: 12, L: 128, S: 128, D: 64 }),
  shape('8×1024×1024×64 backward', 'backward', { H: 8, L: 1024, S: 1024, D: 64 }, { quick: true }),
  ...training,
];
