// WebGPU, shaders: the numbers that every attention kernel is given, as data: one list makes both the WGSL struct and the
// writer, so that neither can drift from the other.

type Kind = 'u32' | 'i32' | 'f32';

const fields = {
  batch: 'u32',
  heads: 'u32',
  kv_heads: 'u32',
  queries: 'u32',
  keys: 'u32',
  head_dim: 'u32',
  value_dim: 'u32',
  q_batch: 'u32',
  q_head: 'u32',
  q_row: 'u32',
  k_batch: 'u32',
  k_head: 'u32',
  k_row: 'u32',
  v_batch: 'u32',
  v_head: 'u32',
  v_row: 'u32',
  out_batch: 'u32',
  out_head: 'u32',
  out_row: 'u32',
  bias_batch: 'u32',
  bias_head: 'u32',
  bias_row: 'u32',
  bias_column: 'u32',
  mask_batch: 'u32',
  mask_head: 'u32',
  mask_row: 'u32',
  mask_column: 'u32',
  scale: 'f32',
  softcap: 'f32',
  /** Bits of `options`. */
  flags: 'u32',
  window_left: 'i32',
  window_right: 'i32',
  drop_below: 'u32',
  keep_scale: 'f32',
  seed_low: 'u32',
  seed_high: 'u32',
  /** Places in `extras`, in words. */
  limits_at: 'u32',
  slopes_at: 'u32',
  sinks_at: 'u32',
  mask_at: 'u32',
  padding_at: 'u32',
  heads_at: 'u32',
  /** Rows of one key/value head: those of all its query heads. */
  group_rows: 'u32',
  row_tiles: 'u32',
  column_chunks: 'u32',
  splits: 'u32',
  split_keys: 'u32',
  first_unit: 'u32',
  pass_units: 'u32',
  /** The workgroups of this dispatch: first … end − 1, `grid_x` in a row. */
  first: 'u32',
  end: 'u32',
  grid_x: 'u32',
  /** What the matrix kernel writes. */
  stage: 'u32',
  slots: 'u32',
} as const satisfies Record<string, Kind>;

export type Params = { [K in keyof typeof fields]: number };

/** Bits of `flags`. */
export const options = {
  bias: 1,
  mask: 2,
  padding: 4,
  slopes: 8,
  sinks: 16,
  dropout: 32,
  dropAll: 64,
} as const;

/** Uniform bindings begin at multiples of this many bytes on every device. */
export const paramsBytes = 256;

const names = Object.keys(fields) as (keyof Params)[];

/** `struct Params` in WGSL, and constants for the bits of `flags`. */
export function paramsText(): string {
  const members = names.map((name) => `  ${name}: ${fields[name]},`).join('\n');
  const bits = Object.entries(options)
    .map(([name, bit]) => `const ${constantName(name)} = ${bit}u;`)
    .join('\n');
  return `struct Params {\n${members}\n}\n${bits}\n`;
}

const constantName = (name: string): string =>
  `HAS_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/** Writes `params` as the struct lies in memory, beginning at word `at`. */
export function writeParams(target: ArrayBuffer, at: number, params: Params): void {
  const words = new Uint32Array(target, at * 4, names.length);
  const floats = new Float32Array(target, at * 4, names.length);
  names.forEach((name, i) => {
    if (fields[name] === 'f32') floats[i] = params[name];
    else words[i] = params[name]; // modulo 2^32, so that −1 is what i32 reads as −1
  });
}
