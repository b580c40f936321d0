// WebGPU, shaders: what a workgroup of attention computes: a unit's rows, and the keys that they see.

/** Needs `params`, scoreText and constantsText. `first_row` and `batch_head` are set before anything else is called. */
export const unitText = /* wgsl */ `
var<private> first_row: u32;
var<private> batch_head: vec2u;

fn row_exists(row: u32) -> bool { return first_row + row < params.group_rows; }
fn head_of(row: u32) -> u32 {
  return batch_head.y * (params.heads / params.kv_heads) + (first_row + row) / params.queries;
}
fn query_of(row: u32) -> u32 { return (first_row + row) % params.queries; }
fn row_base(row: u32) -> u32 {
  return batch_head.x * params.q_batch + head_of(row) * params.q_head + query_of(row) * params.q_row;
}

// The first key that any of the tile's rows sees in a split, and the one behind the last. Rows of several heads: any query.
// row0 is first_row: what private variables hold does not count as uniform, and barriers lie within loops over these keys.
fn keys_of_rows(b: u32, row0: u32, split: u32) -> vec2u {
  let last_row = min(row0 + TILE_ROWS, params.group_rows) - 1u;
  var first_query = i32(row0 % params.queries);
  var last_query = i32(last_row % params.queries);
  if (row0 / params.queries != last_row / params.queries) {
    first_query = 0;
    last_query = i32(params.queries) - 1;
  }
  last_query = min(last_query, query_length(b) - 1);
  if (first_query > last_query) { return vec2u(); }
  return vec2u(max(first_key(b, first_query), split * params.split_keys),
               min(end_key(b, last_query), (split + 1u) * params.split_keys));
}

fn is_unsafe(x: vec4f) -> vec4<bool> { return (bitcast<vec4u>(x) & vec4u(0x7f800000u)) == vec4u(0x7f800000u); }
`;
