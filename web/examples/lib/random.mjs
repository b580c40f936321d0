// Example logic: seeded numbers, the same on every machine, so that a sentence always gets the same vectors.

/**
 * A 32-bit hash of a string (FNV-1a over UTF-16 units).
 * @param {string} text
 * @param {number} [seed]
 * @returns {number} an unsigned 32-bit integer
 */
export function hashString(text, seed = 0) {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return hash;
}

/**
 * A generator of uniform numbers in (0, 1): a Weyl sequence through the finalizer of MurmurHash3.
 * @param {number} seed any 32-bit integer
 * @returns {() => number}
 */
export function uniformGenerator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    x = (x ^ (x >>> 16)) >>> 0;
    return (x + 0.5) / 4294967296;
  };
}

/**
 * Standard normal numbers (Box–Muller).
 * @param {number} count
 * @param {number} seed
 * @returns {Float32Array}
 */
export function normalNumbers(count, seed) {
  const uniform = uniformGenerator(seed);
  const numbers = new Float32Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    const angle = 2 * Math.PI * uniform();
    numbers[i] = radius * Math.cos(angle);
    if (i + 1 < count) numbers[i + 1] = radius * Math.sin(angle);
  }
  return numbers;
}

/**
 * The items in another order (Fisher–Yates).
 * @template T
 * @param {readonly T[]} items
 * @param {number} seed
 * @returns {T[]} a new array
 */
export function shuffled(items, seed) {
  const uniform = uniformGenerator(seed);
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.floor(uniform() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}
