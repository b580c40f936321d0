// WebGPU, shaders: what the attention and matrix kernels share: the shape of a tile, and the product q·kᵀ of one.
//
// A workgroup is 16 × `threadsY` threads. A thread makes `threadRows` rows × 4 neighbouring keys of the tile's scores, so that
// each vec4 read from workgroup memory serves 4 · threadRows / 2 multiply-adds of 4.

export interface Tile {
  name: string;
  threadsY: number;
  threadRows: number;
}

/** Many rows; and few, for decoding. */
export const tiles = {
  tall: { name: 'tall', threadsY: 8, threadRows: 4 },
  flat: { name: 'flat', threadsY: 4, threadRows: 1 },
} as const satisfies Record<string, Tile>;

export const threadsX = 16;
/** Keys a tile. */
export const tileKeys = 64;
/** Value columns of a workgroup: 64 or 128. */
export const chunkColumns = (vectors: 1 | 2): number => threadsX * 4 * vectors;
export const tileRows = ({ threadsY, threadRows }: Tile): number => threadsY * threadRows;
export const tileThreads = ({ threadsY }: Tile): number => threadsX * threadsY;

/** Elements of D that lie in workgroup memory at a time, in vec4s. */
const depth = 4;

/** Vec4s of workgroup memory for the product. */
export const productStage = (tile: Tile): number => (tileKeys + tileRows(tile)) * depth;

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** How an array lies on the device: floats one by one, or four at a time, or four halves in two words. */
export type Elements = 'scalar' | 'vec4' | 'half';

export const arrayType: Readonly<Record<Elements, string>> = {
  scalar: 'array<f32>',
  vec4: 'array<vec4f>',
  half: 'array<vec2u>',
};

/**
 * `name_at(base, d)`: elements d … d + 3 of a row of `size` floats that begins at `base`, zeros past its end. But for 'scalar'
 * also `name_vector(at)`: elements 4 · at … 4 · at + 3; there `base`, `d` and `size` are multiples of 4.
 */
export function loaderText(name: string, size: string, elements: Elements = 'scalar'): string {
  if (elements !== 'scalar') {
    const load =
      elements === 'vec4'
        ? `return ${name}[at];`
        : `let words = ${name}[at]; return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));`;
    return /* wgsl */ `
fn ${name}_vector(at: u32) -> vec4f { ${load} }
fn ${name}_at(base: u32, d: u32) -> vec4f {
  if (d < ${size}) { return ${name}_vector((base + d) / 4u); }
  return vec4f();
}
`;
  }
  return /* wgsl */ `
fn ${name}_at(base: u32, d: u32) -> vec4f {
  if (d + 3u < ${size}) {
    return vec4f(${name}[base + d], ${name}[base + d + 1u], ${name}[base + d + 2u], ${name}[base + d + 3u]);
  }
  var result = vec4f();
  if (d < ${size}) { result.x = ${name}[base + d]; }
  if (d + 1u < ${size}) { result.y = ${name}[base + d + 1u]; }
  if (d + 2u < ${size}) { result.z = ${name}[base + d + 2u]; }
  return result;
}
`;
}

export function constantsText(tile: Tile): string {
  return /* wgsl */ `
const THREADS = ${tileThreads(tile)}u;
const TILE_ROWS = ${tileRows(tile)}u;
const TILE_KEYS = ${tileKeys}u;
`;
}

/**
 * Declares s0 … (one vec4 a row of the thread: 4 keys) and fills them with q·k for the rows `row_base` (a function of the
 * tile's row; `row_exists` likewise) and the keys k0 … k0 + 63, those below params.keys.
 *
 * Keys lie in `stage` so that a thread's four are 16 slots apart and neighbours' are side by side; the vec4s of a slot are
 * swapped about by its number, which spreads them over the banks.
 */
export function productText({ threadRows }: Tile): string {
  const rows = range(threadRows);
  const keys = range(4);
  return /* wgsl */ `
    ${rows.map((r) => `var s${r} = vec4f();`).join(' ')}
    for (var d0 = 0u; d0 < params.head_dim; d0 += ${depth * 4}u) {
      workgroupBarrier();
      for (var e = t; e < TILE_KEYS * ${depth}u; e += THREADS) {
        let key = e / ${depth}u;
        let x = e % ${depth}u;
        let slot = (key % 4u) * ${threadsX}u + key / 4u;
        var value = vec4f();
        if (k0 + key < params.keys) {
          value = k_at(k_base + (k0 + key) * params.k_row, d0 + x * 4u);
        }
        stage[slot * ${depth}u + (x ^ ((slot >> 1u) & 3u))] = value;
      }
      for (var e = t; e < TILE_ROWS * ${depth}u; e += THREADS) {
        let row = e / ${depth}u;
        let x = e % ${depth}u;
        var value = vec4f();
        if (row_exists(row)) { value = q_at(row_base(row), d0 + x * 4u); }
        stage[TILE_KEYS * ${depth}u + e] = value;
      }
      workgroupBarrier();
      for (var x = 0u; x < ${depth}u; x++) {
        let key_at = tx * ${depth}u + (x ^ ((tx >> 1u) & 3u));
        let row_at = TILE_KEYS * ${depth}u + ty * ${threadRows * depth}u + x;
        ${keys.map((n) => `let key${n} = stage[${n * threadsX * depth}u + key_at];`).join(' ')}
        ${rows
          .map(
            (r) => `let query${r} = stage[row_at + ${r * depth}u];
        s${r} += vec4f(${keys.map((n) => `dot(query${r}, key${n})`).join(', ')});`,
          )
          .join('\n        ')}
      }
    }
`;
}
