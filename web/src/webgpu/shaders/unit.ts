// WebGPU, shaders: what a workgroup of attention computes: a unit's rows, and the keys that they see.
import { arrayType, chunkColumns, loaderText, threadsX, type Elements, type Tile } from './tile.js';

/** What both attention kernels are bound to. */
export const bindingsText = (
  elements: Elements,
  out: 'f32' | 'vec4f',
): string => /* wgsl */ `@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: ${arrayType[elements]};
@group(0) @binding(2) var<storage, read> k: ${arrayType[elements]};
@group(0) @binding(3) var<storage, read> v: ${arrayType[elements]};
@group(0) @binding(4) var<storage, read> bias: array<u32>;
@group(0) @binding(5) var<storage, read> extras: array<u32>;
@group(0) @binding(6) var<storage, read_write> out: array<${out}>;
@group(0) @binding(7) var<storage, read_write> stats: array<u32>;`;

export const loadersText = (
  elements: Elements,
): string => `${loaderText('q', 'params.head_dim', elements)}
${loaderText('k', 'params.head_dim', elements)}
${loaderText('v', 'params.value_dim', elements)}`;

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

/** The kernel's head, and what a workgroup computes: `chunk` of value columns, `split` of keys, `unit` of rows from `unit_row` on. */
export const beginText = (
  { threadsY }: Tile,
  vectors: 1 | 2,
): string => /* wgsl */ `@compute @workgroup_size(${threadsX}, ${threadsY})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let work = params.first + group.x + group.y * params.grid_x;
  if (work >= params.end) { return; }
  let tx = t % ${threadsX}u;
  let ty = t / ${threadsX}u;
  let chunk = work % params.column_chunks;
  let split = (work / params.column_chunks) % params.splits;
  let unit = work / (params.column_chunks * params.splits);
  let pair = unit / params.row_tiles;
  let b = pair / params.kv_heads;
  batch_head = vec2u(b, pair % params.kv_heads);
  let unit_row = (unit % params.row_tiles) * TILE_ROWS;
  first_row = unit_row;
  let k_base = b * params.k_batch + batch_head.y * params.k_head;
  let v_base = b * params.v_batch + batch_head.y * params.v_head;
  let column0 = chunk * ${chunkColumns(vectors)}u;`;

/** A row's share of a split for merge.ts: `top` and `total`. */
export const splitStatsText = (
  row: string,
  top: string,
): string => /* wgsl */ `let rows = params.pass_units * TILE_ROWS;
        let at = split * 2u * rows + (unit - params.first_unit) * TILE_ROWS + ${row};
        stats[at] = bitcast<u32>(${top});
        stats[at + rows] = bitcast<u32>(total);`;

/** A finished row's statistics, for weights and log-sum-exp. `row` is a Row: head and query. */
export const statsText = (
  row: string,
  top: string,
): string => /* wgsl */ `let rows = params.batch * params.heads * params.queries;
        let at = (b * params.heads + ${row}.head) * params.queries + ${row}.query;
        stats[at] = bitcast<u32>(${top});
        stats[at + rows] = bitcast<u32>(factor);
        stats[at + 2u * rows] = log_sum_exp(${top}, total);`;
