// WebGPU, shaders: what surrounds a layer's products, one element of the result an invocation: a convolution's taps side by side,
// rotary positions, vectors of length 1, and sums over heads. The twins of cpp/src/nn/{convolution,rotary}.cc and
// cpp/src/layer/{cosine,merge_heads}.cc.

export const pointwiseThreads = 64;

/** `params.mode`. */
export const pointwiseModes = {
  /** [batch, rows, size] → [batch, rows, count · size]: of the rows that begin `offset` rows before; zeros outside. */
  taps: 0,
  /** [batch, rows, count, size], the first `width` elements of each vector, by `table`: (cos, sin) of each row and pair. */
  rotateHalves: 1,
  rotatePairs: 2,
  /** Vectors of `size` elements, an invocation a vector. */
  normalize: 3,
  /** [batch, count, size] → [batch, size], times `factor`. */
  sum: 4,
} as const;

export function pointwiseText(): string {
  const { taps, rotateHalves, rotatePairs, normalize } = pointwiseModes;
  return /* wgsl */ `
struct Params {
  mode: u32,
  rows: u32,
  count: u32,
  size: u32,
  width: u32,
  offset: u32,
  /** Vec2s of the table from one batch to the next; 0: they share it. */
  table_batch: u32,
  factor: f32,
  /** Invocations altogether. */
  all: u32,
  first: u32,
  end: u32,
  grid_x: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn tap(n: u32) -> f32 {
  let width = params.count * params.size;
  let row = n / width;
  let shift = (n % width) / params.size;
  let at = i32(row % params.rows) + i32(shift) - i32(params.offset);
  if (at < 0 || at >= i32(params.rows)) { return 0.0; }
  return x[(row / params.rows * params.rows + u32(at)) * params.size + n % params.size];
}

fn rotated(n: u32) -> f32 {
  let element = n % params.size;
  if (element >= params.width) { return x[n]; }
  let half = params.width / 2u;
  var pair = element / 2u;
  var is_second = element % 2u == 1u;
  var step = 1u;
  if (params.mode == ${rotateHalves}u) {
    pair = element % half;
    is_second = element >= half;
    step = half;
  }
  let row = n / (params.count * params.size);
  let turn = table[row / params.rows * params.table_batch + row % params.rows * half + pair];
  if (is_second) { return x[n - step] * turn.y + x[n] * turn.x; }
  return x[n] * turn.x - x[n + step] * turn.y;
}

// Elements are divided by the largest first, so that no square overflows. 1e-12 keeps the zero vector at zero.
fn normalize_vector(n: u32) {
  let at = n * params.size;
  var largest = 0.0;
  for (var i = 0u; i < params.size; i++) { largest = max(largest, abs(x[at + i])); }
  largest = max(largest, 1e-30);
  var sum = 0.0;
  for (var i = 0u; i < params.size; i++) {
    let part = x[at + i] / largest;
    sum += part * part;
  }
  var length = largest * sqrt(sum);
  if (length < 1e-12) { length = 1e-12; }
  for (var i = 0u; i < params.size; i++) { y[at + i] = x[at + i] / length; }
}

fn summed(n: u32) -> f32 {
  var sum = 0.0;
  let at = n / params.size * params.count * params.size + n % params.size;
  for (var i = 0u; i < params.count; i++) { sum += x[at + i * params.size]; }
  return sum * params.factor;
}

@compute @workgroup_size(${pointwiseThreads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let work = params.first + group.x + group.y * params.grid_x;
  if (work >= params.end) { return; }
  let n = work * ${pointwiseThreads}u + t;
  if (n >= params.all) { return; }
  if (params.mode == ${taps}u) { y[n] = tap(n); }
  else if (params.mode == ${rotateHalves}u || params.mode == ${rotatePairs}u) { y[n] = rotated(n); }
  else if (params.mode == ${normalize}u) { normalize_vector(n); }
  else { y[n] = summed(n); }
}
`;
}
