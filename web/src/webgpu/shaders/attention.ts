// WebGPU, shaders: attention forward over tiles of rows and keys with an online softmax (Dao et al., "FlashAttention", 2022).
// No L × S matrix is held. Baseline WebGPU: no subgroups, 16 KiB of workgroup memory, 7 storage buffers, f32.
//
// A workgroup takes one unit (a tile of rows of one key/value head; rows of all query heads that share it), one chunk of value
// columns and one split of the keys. With several splits it leaves unscaled sums to merge.ts.
import { paramsText } from './params.js';
import { dropoutText, finishText, scoreText } from './score.js';
import {
  constantsText,
  loaderText,
  productStage,
  productText,
  range,
  threadsX,
  tileKeys,
  tileRows,
  tileThreads,
  type Tile,
} from './tile.js';

/** Value columns of a workgroup: 64 or 128. */
export const chunkColumns = (vectors: 1 | 2): number => threadsX * 4 * vectors;

/** Row stride of the tile of weights, in vec4s: one more than the keys need, so that rows begin in different banks. */
const weightStride = tileKeys / 4 + 1;

export function attentionText(tile: Tile, vectors: 1 | 2): string {
  const { threadsY, threadRows } = tile;
  const rows = range(threadRows);
  const columns = range(vectors);
  const valueKeys = 16 / vectors; // keys of values in workgroup memory at a time
  const keyVectors = threadsX * vectors; // vec4s of one key's value chunk
  const stageSize = Math.max(productStage(tile), valueKeys * keyVectors);
  const lanes = tileThreads(tile) / tileRows(tile); // threads a row, in the softmax
  const laneVectors = tileKeys / 4 / lanes;
  const each = (make: (r: number, c: number) => string): string =>
    rows.flatMap((r) => columns.map((c) => make(r, c))).join('\n          ');
  const values = (key: string): string =>
    columns
      .map((c) => `let v${c} = stage[(g * 4u + ${key}) * ${keyVectors}u + ${c * threadsX}u + tx];`)
      .join(' ');
  return /* wgsl */ `
${paramsText()}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<u32>;
@group(0) @binding(5) var<storage, read> extras: array<u32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<storage, read_write> stats: array<u32>;
${constantsText(tile)}
const LANES = ${lanes}u;
const STRIDE = ${weightStride}u;
${scoreText}
${dropoutText}
${finishText}
${loaderText('q', 'params.head_dim')}
${loaderText('k', 'params.head_dim')}
${loaderText('v', 'params.value_dim')}
var<workgroup> weights: array<vec4f, ${tileRows(tile) * weightStride}>;
var<workgroup> stage: array<vec4f, ${stageSize}>;
var<workgroup> shared_floats: array<f32, ${tileThreads(tile)}>;
var<workgroup> row_factors: array<f32, ${tileRows(tile)}>;
// Not 0 once a value that is NaN or infinite was seen: from then on hidden keys are never multiplied.
var<workgroup> unsafe_values: atomic<u32>;

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
fn is_unsafe(x: vec4f) -> bool {
  return any((bitcast<vec4u>(x) & vec4u(0x7f800000u)) == vec4u(0x7f800000u));
}

@compute @workgroup_size(${threadsX}, ${threadsY})
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
  // A local as well: what private variables hold does not count as uniform, and barriers lie within the loops below.
  let row0 = (unit % params.row_tiles) * TILE_ROWS;
  first_row = row0;
  let k_base = b * params.k_batch + batch_head.y * params.k_head;
  let v_base = b * params.v_batch + batch_head.y * params.v_head;
  let column0 = chunk * ${chunkColumns(vectors)}u;

  if (t == 0u) { atomicStore(&unsafe_values, 0u); }

  // The keys that any of the tile's rows sees. Rows of several heads: any query.
  let last_row = min(row0 + TILE_ROWS, params.group_rows) - 1u;
  var first_query = i32(row0 % params.queries);
  var last_query = i32(last_row % params.queries);
  if (row0 / params.queries != last_row / params.queries) {
    first_query = 0;
    last_query = i32(params.queries) - 1;
  }
  last_query = min(last_query, query_length(b) - 1);
  var begin = 0u;
  var end = 0u;
  if (first_query <= last_query) {
    begin = max(first_key(b, first_query), split * params.split_keys);
    end = min(end_key(b, last_query), (split + 1u) * params.split_keys);
  }

  // The row whose softmax this thread helps with.
  let own = t / LANES;
  let lane = t % LANES;
  let row = row_of(b, head_of(own), query_of(own), row_exists(own));
  var top = LOWEST;
  var sum = 0.0;
  ${each((r, c) => `var a${r}${c} = vec4f();`)}

  for (var k0 = begin / TILE_KEYS * TILE_KEYS; k0 < end; k0 += TILE_KEYS) {
    workgroupBarrier();
    ${productText(tile)}
    ${rows.map((r) => `weights[(ty * ${threadRows}u + ${r}u) * STRIDE + tx] = s${r};`).join('\n    ')}
    workgroupBarrier();

    var highest = top;
    var seen = 0u;
    for (var n = 0u; n < ${laneVectors}u; n++) {
      let at = own * STRIDE + n * LANES + lane;
      let raw = weights[at];
      var scored = vec4f();
      for (var c = 0u; c < 4u; c++) {
        let j = k0 + (n * LANES + lane) * 4u + c;
        if (is_visible(row, j)) {
          let score = biased(softcapped(raw[c] * params.scale), row, j);
          scored[c] = score;
          highest = max(highest, score);
          seen |= 1u << (n * 4u + c);
        }
      }
      weights[at] = scored;
    }
    shared_floats[t] = highest;
    workgroupBarrier();
    for (var n = 0u; n < LANES; n++) { highest = max(highest, shared_floats[own * LANES + n]); }
    let shrink = exp(top - highest);
    if (lane == 0u) { row_factors[own] = shrink; }
    top = highest;
    sum *= shrink;
    for (var n = 0u; n < ${laneVectors}u; n++) {
      let at = own * STRIDE + n * LANES + lane;
      let here = (vec4u(seen >> (n * 4u)) & vec4u(1u, 2u, 4u, 8u)) != vec4u();
      var weight = select(vec4f(), exp(weights[at] - vec4f(top)), here);
      sum += weight.x + weight.y + weight.z + weight.w;
      if ((params.flags & HAS_DROPOUT) != 0u) {
        weight = select(vec4f(), weight * keep_factors(row, k0 + (n * LANES + lane) * 4u), here);
      }
      weights[at] = weight;
    }
    workgroupBarrier();

    ${rows
      .map(
        (r) =>
          `let shrink${r} = row_factors[ty * ${threadRows}u + ${r}u]; ${columns.map((c) => `a${r}${c} *= shrink${r};`).join(' ')}`,
      )
      .join('\n    ')}
    for (var v0 = 0u; v0 < TILE_KEYS && k0 + v0 < end; v0 += ${valueKeys}u) {
      if (v0 > 0u) { workgroupBarrier(); }
      for (var e = t; e < ${valueKeys * keyVectors}u; e += THREADS) {
        let j = k0 + v0 + e / ${keyVectors}u;
        var value = vec4f();
        if (j < params.keys) { value = v_at(v_base + j * params.v_row, column0 + (e % ${keyVectors}u) * 4u); }
        if (is_unsafe(value)) { atomicOr(&unsafe_values, 1u); }
        stage[e] = value;
      }
      workgroupBarrier();
      let is_safe = atomicLoad(&unsafe_values) == 0u;
      for (var g = 0u; g < ${valueKeys / 4}u; g++) {
        ${rows.map((r) => `let p${r} = weights[(ty * ${threadRows}u + ${r}u) * STRIDE + v0 / 4u + g];`).join('\n        ')}
        if (is_safe) {
          ${['x', 'y', 'z', 'w']
            .map(
              (n, key) =>
                `{ ${values(`${key}u`)} ${each((r, c) => `a${r}${c} += p${r}.${n} * v${c};`)} }`,
            )
            .join('\n          ')}
        } else {
          for (var key = 0u; key < 4u; key++) {
            ${values('key')}
            ${each((r, c) => `if ((bitcast<u32>(p${r}[key]) << 1u) != 0u) { a${r}${c} += p${r}[key] * v${c}; }`)}
          }
        }
      }
    }
  }

  shared_floats[t] = sum;
  workgroupBarrier();
  if (lane == 0u) {
    var total = 0.0;
    for (var n = 0u; n < LANES; n++) { total += shared_floats[own * LANES + n]; }
    if (params.splits > 1u) {
      row_factors[own] = 1.0;
      if (chunk == 0u) {
        let rows = params.pass_units * TILE_ROWS;
        let at = split * 2u * rows + (unit - params.first_unit) * TILE_ROWS + own;
        stats[at] = bitcast<u32>(top);
        stats[at + rows] = bitcast<u32>(total);
      }
    } else {
      let factor = finished_factor(top, total, row.head);
      row_factors[own] = factor;
      if (chunk == 0u && row_exists(own)) {
        let rows = params.batch * params.heads * params.queries;
        let at = (b * params.heads + row.head) * params.queries + row.query;
        stats[at] = bitcast<u32>(top);
        stats[at + rows] = bitcast<u32>(factor);
        stats[at + 2u * rows] = log_sum_exp(top, total);
      }
    }
  }
  workgroupBarrier();
  for (var r = 0u; r < ${threadRows}u; r++) {
    let tile_row = ty * ${threadRows}u + r;
    if (!row_exists(tile_row)) { continue; }
    var target_at = b * params.out_batch + head_of(tile_row) * params.out_head + query_of(tile_row) * params.out_row;
    if (params.splits > 1u) {
      target_at = ((split * params.pass_units + unit - params.first_unit) * TILE_ROWS + tile_row) * params.value_dim;
    }
    let factor = row_factors[tile_row];
    for (var c = 0u; c < ${vectors}u; c++) {
      var value = vec4f();
      ${each((r, c) => `if (r == ${r}u && c == ${c}u) { value = a${r}${c}; }`)}
      let column = column0 + (c * ${threadsX}u + tx) * 4u;
      // A row without keys has a zero factor and zero sums.
      for (var x = 0u; x < 4u; x++) {
        if (column + x < params.value_dim) { out[target_at + column + x] = value[x] * factor; }
      }
    }
  }
}
`;
}
