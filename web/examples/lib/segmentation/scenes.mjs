// Example data: synthetic scenes, made on the fly from a seed: discs, squares and triangles, plain, striped or checked, on a
// shaded ground, under noise. What a place is called depends on its texture and on what lies around it, never on its colour: a
// plain patch looks like ground until one has looked further.
import { uniformGenerator } from '../random.mjs';

/** A scene is SIDE × SIDE pixels of three colours, cut into GRID × GRID patches of PATCH × PATCH pixels. */
export const SIDE = 48;
export const PATCH = 4;
export const GRID = SIDE / PATCH;
/** How many patches there are, L, and how many numbers each has. */
export const PATCHES = GRID * GRID;
export const PATCH_SIZE = PATCH * PATCH * 3;

/** What a place can be. */
export const CLASSES = /** @type {const} */ (['ground', 'plain', 'striped', 'checked']);

const NOISE = 0.06;
/** At least this far apart are two colours that have to be told apart, in one of the three channels. */
const CONTRAST = 0.35;

/**
 * @typedef {object} Scene
 * @property {Float32Array} pixels [SIDE,SIDE,3], 0 to 1
 * @property {Uint8Array} truth [GRID,GRID]: the class that covers most of each patch, the lower of equals
 */

/** @typedef {(x: number, y: number) => boolean} Within */

/**
 * A disc, square or triangle about a centre.
 * @param {number} form 0, 1 or 2
 * @param {number} cx @param {number} cy @param {number} radius pixels
 * @param {number} turn radians
 * @returns {Within}
 */
function shapeOf(form, cx, cy, radius, turn) {
  if (form === 0) return (x, y) => (x - cx) ** 2 + (y - cy) ** 2 <= radius ** 2;
  // A regular polygon: within reach of all its sides.
  const sides = form === 1 ? 4 : 3;
  const reach = radius * (form === 1 ? 0.9 : 0.65);
  const normals = Array.from({ length: sides }, (_, i) => turn + (2 * Math.PI * i) / sides);
  return (x, y) =>
    normals.every((angle) => (x - cx) * Math.cos(angle) + (y - cy) * Math.sin(angle) <= reach);
}

/**
 * One scene.
 * @param {number} seed
 * @returns {Scene} the same for the same seed
 */
export function makeScene(seed) {
  const uniform = uniformGenerator(Math.imul(seed + 1, 0x27d4eb2f));
  const between = (/** @type {number} */ low, /** @type {number} */ high) =>
    low + (high - low) * uniform();
  const below = (/** @type {number} */ n) => Math.floor(uniform() * n);
  const colour = () => [uniform(), uniform(), uniform()];
  /** @param {number[][]} others @returns {number[]} */
  const colourApartFrom = (...others) => {
    for (;;) {
      const c = colour();
      if (others.every((o) => Math.max(...c.map((v, i) => Math.abs(v - o[i]))) >= CONTRAST))
        return c;
    }
  };

  const ground = colour();
  const shade = [between(-0.15, 0.15), between(-0.15, 0.15)];
  const shapes = Array.from({ length: 1 + below(3) }, () => {
    const radius = between(8, 14);
    const kind = 1 + below(3);
    const first = colourApartFrom(ground);
    return {
      kind,
      within: shapeOf(
        below(3),
        between(8, SIDE - 8),
        between(8, SIDE - 8),
        radius,
        between(0, 2 * Math.PI),
      ),
      first,
      second: colourApartFrom(ground, first),
      // Stripes run across or down, two pixels wide; checks are two pixels wide.
      across: uniform() < 0.5,
      phase: below(4),
    };
  });

  const pixels = new Float32Array(SIDE * SIDE * 3);
  const classes = new Uint8Array(SIDE * SIDE);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      // Later shapes lie on earlier ones.
      const shape = shapes.findLast(({ within }) => within(x + 0.5, y + 0.5));
      let paint = ground;
      if (shape) {
        const { kind, first, second, across, phase } = shape;
        const column = (x + phase) >> 1;
        const row = (y + phase) >> 1;
        const odd = kind === 2 ? (across ? row : column) & 1 : kind === 3 ? (row + column) & 1 : 0;
        paint = odd ? second : first;
        classes[y * SIDE + x] = kind;
      }
      const light = shape ? 0 : (shade[0] * (2 * x - SIDE) + shade[1] * (2 * y - SIDE)) / SIDE;
      for (let c = 0; c < 3; c++) {
        // The sum of three uniform numbers: near enough to a bell, and cheap.
        const noise = (uniform() + uniform() + uniform() - 1.5) * 2 * NOISE;
        pixels[(y * SIDE + x) * 3 + c] = Math.min(1, Math.max(0, paint[c] + light + noise));
      }
    }
  }
  return { pixels, truth: mostOf(classes) };
}

/** @param {Uint8Array} classes [SIDE,SIDE] @returns {Uint8Array} [GRID,GRID] */
function mostOf(classes) {
  const truth = new Uint8Array(PATCHES);
  for (let patch = 0; patch < PATCHES; patch++) {
    const counts = new Array(CLASSES.length).fill(0);
    eachPixel(patch, (pixel) => counts[classes[pixel]]++);
    truth[patch] = counts.indexOf(Math.max(...counts));
  }
  return truth;
}

/** @param {number} patch @param {(pixel: number, n: number) => void} visit with the pixel's index, and its number in the patch */
function eachPixel(patch, visit) {
  const top = Math.floor(patch / GRID) * PATCH;
  const left = (patch % GRID) * PATCH;
  for (let n = 0; n < PATCH * PATCH; n++) {
    visit((top + Math.floor(n / PATCH)) * SIDE + left + (n % PATCH), n);
  }
}

/**
 * The patches of scenes, as a model takes them.
 * @param {readonly Scene[]} scenes
 * @returns {{ data: Float32Array, shape: [number, number, number] }} [B,PATCHES,PATCH_SIZE], −1 to 1
 */
export function patchesOf(scenes) {
  const data = new Float32Array(scenes.length * PATCHES * PATCH_SIZE);
  scenes.forEach(({ pixels }, b) => {
    for (let patch = 0; patch < PATCHES; patch++) {
      const start = (b * PATCHES + patch) * PATCH_SIZE;
      eachPixel(patch, (pixel, n) => {
        for (let c = 0; c < 3; c++) data[start + n * 3 + c] = 2 * pixels[pixel * 3 + c] - 1;
      });
    }
  });
  return { data, shape: [scenes.length, PATCHES, PATCH_SIZE] };
}
