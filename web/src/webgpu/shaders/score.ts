// WebGPU, shaders: from q·k to a score, and which keys a row sees. The WGSL twin of cpp/src/attention/visibility.h,
// reference.cc and kernels/dropout.h; what each option means stands there.
//
// WGSL may assume that no NaN or infinity occurs, so nothing here forms one or compares with one: −∞ in a bias is known by its
// bits, a hidden key by a boolean, and −∞ is written as bits.

export const numbersText = /* wgsl */ `
const LOWEST = -3.4028234e38;
const MINUS_INFINITY = 0xff800000u;
`;

/** Needs `params`, `extras` (array<u32>) and `bias` (array<u32>). */
export const scoreText = /* wgsl */ `
${numbersText}
const HIDING = HAS_MASK | HAS_PADDING | HAS_BIAS;

struct Row {
  batch: u32,
  head: u32,
  query: u32,
  position: i32,  // among the keys
  begin: u32,     // of the keys that lengths, causality and window leave
  end: u32,
}

// Lengths and offset of a batch: kvLength, qLength, offset.
fn key_length(b: u32) -> i32 { return bitcast<i32>(extras[params.limits_at + 3u * b]); }
fn query_length(b: u32) -> i32 { return bitcast<i32>(extras[params.limits_at + 3u * b + 1u]); }
fn offset_of(b: u32) -> i32 { return bitcast<i32>(extras[params.limits_at + 3u * b + 2u]); }

fn first_key(b: u32, i: i32) -> u32 {
  if (params.window_left < 0) { return 0u; }
  return u32(clamp(i + offset_of(b) - params.window_left, 0, key_length(b)));
}

fn end_key(b: u32, i: i32) -> u32 {
  let keys = key_length(b);
  let position = i + offset_of(b);
  // Beyond the last key whatever the window's right side, which would overflow 32 bits when added.
  if (params.window_right < 0 || position >= keys) { return u32(keys); }
  return u32(clamp(position + params.window_right + 1, 0, keys));
}

fn row_of(b: u32, h: u32, i: u32, exists: bool) -> Row {
  var row = Row(b, h, i, i32(i) + offset_of(b), 0u, 0u);
  if (exists && i32(i) < query_length(b)) {
    row.begin = first_key(b, i32(i));
    row.end = end_key(b, i32(i));
  }
  return row;
}

fn is_set(words_at: u32, index: u32) -> bool {
  return ((extras[words_at + index / 4u] >> (8u * (index % 4u))) & 0xffu) != 0u;
}

fn bias_at(row: Row, j: u32) -> u32 {
  return bias[row.batch * params.bias_batch + row.head * params.bias_head + row.query * params.bias_row
              + j * params.bias_column];
}

// Whether no mask hides a key between the row's first and last.
fn is_kept(row: Row, j: u32) -> bool {
  if ((params.flags & HAS_MASK) != 0u
      && !is_set(params.mask_at, row.batch * params.mask_batch + row.head * params.mask_head
                 + row.query * params.mask_row + j * params.mask_column)) { return false; }
  if ((params.flags & HAS_PADDING) != 0u && !is_set(params.padding_at, row.batch * params.keys + j)) { return false; }
  if ((params.flags & HAS_BIAS) != 0u && bias_at(row, j) == MINUS_INFINITY) { return false; }
  return true;
}

// Which of the keys j … j + 3 the row sees, masks apart.
fn keys_in_range(row: Row, j: u32) -> vec4<bool> {
  let keys = vec4u(j) + vec4u(0u, 1u, 2u, 3u);
  return (keys >= vec4u(row.begin)) & (keys < vec4u(row.end));
}

// The same, with masks.
fn visible_keys(row: Row, j: u32) -> vec4<bool> {
  var seen = keys_in_range(row, j);
  if ((params.flags & HIDING) != 0u) {
    if (seen.x) { seen.x = is_kept(row, j); }
    if (seen.y) { seen.y = is_kept(row, j + 1u); }
    if (seen.z) { seen.z = is_kept(row, j + 2u); }
    if (seen.w) { seen.w = is_kept(row, j + 3u); }
  }
  return seen;
}

// Own arithmetic: drivers' tanh gives NaN for large arguments or few digits near 0. The series below 0.3 errs by 3e-8.
fn soft_tanh(x: vec4f) -> vec4f {
  let a = abs(x);
  let s = x * x;
  let series = x * (1.0 + s * (-0.33333333 + s * (0.13333333 + s * (-0.053968254 + s * 0.021869488))));
  // NaN fails every comparison and goes through. At 10 the result is 1 but for 4e-9.
  let limited = select(a, vec4f(10.0), a > vec4f(10.0));
  return select(sign(x) * (1.0 - 2.0 / (exp(2.0 * limited) + 1.0)), series, a < vec4f(0.3));
}

fn softcapped(scores: vec4f) -> vec4f {
  if (params.softcap > 0.0) { return params.softcap * soft_tanh(scores / params.softcap); }
  return scores;
}

// Bias and ALiBi, for keys j … j + 3; what comes out for one that the row does not see means nothing.
fn biased(scores: vec4f, row: Row, j: u32) -> vec4f {
  var result = scores;
  if ((params.flags & HAS_BIAS) != 0u) {
    result += bitcast<vec4f>(vec4u(bias_at(row, j), bias_at(row, j + 1u), bias_at(row, j + 2u), bias_at(row, j + 3u)));
  }
  if ((params.flags & HAS_SLOPES) != 0u) {
    let distance = abs(vec4f(vec4i(row.position - i32(j)) - vec4i(0, 1, 2, 3)));
    result -= bitcast<f32>(extras[params.slopes_at + row.head]) * distance;
  }
  return result;
}
`;

/** Philox-4x32-10, and the factors of keys j … j + 3, j a multiple of 4. */
export const dropoutText = /* wgsl */ `
fn high_product(a: u32, b: u32) -> u32 {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let carried = a0 * b1 + (middle & 0xffffu);
  return a1 * b1 + (middle >> 16u) + (carried >> 16u);
}

fn keep_factors(row: Row, j: u32) -> vec4f {
  if ((params.flags & HAS_DROP_ALL) != 0u) { return vec4f(); }
  var c = vec4u(j / 4u, row.query, row.head, row.batch);
  var key = vec2u(params.seed_low, params.seed_high);
  for (var round = 0; round < 10; round++) {
    let n0 = high_product(0xCD9E8D57u, c.z) ^ c.y ^ key.x;
    let n2 = high_product(0xD2511F53u, c.x) ^ c.w ^ key.y;
    c = vec4u(n0, 0xCD9E8D57u * c.z, n2, 0xD2511F53u * c.x);
    key += vec2u(0x9E3779B9u, 0xBB67AE85u);
  }
  return select(vec4f(params.keep_scale), vec4f(), c < vec4u(params.drop_below));
}
`;

/** A finished row: the factor that its sums are scaled by, and the log-sum-exp as bits. `sum` is 0 for a row without keys. */
export const finishText = /* wgsl */ `
fn finished_factor(top: f32, sum: f32, head: u32) -> f32 {
  if (sum == 0.0) { return 0.0; }
  if ((params.flags & HAS_SINKS) == 0u) { return 1.0 / sum; }
  let sink = bitcast<f32>(extras[params.sinks_at + head]);
  let highest = max(top, sink);
  let numerator = exp(top - highest);
  return numerator / (sum * numerator + exp(sink - highest));
}

fn log_sum_exp(top: f32, sum: f32) -> u32 {
  if (sum == 0.0) { return MINUS_INFINITY; }
  return bitcast<u32>(top + log(sum));
}
`;
