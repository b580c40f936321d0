// WebGPU, shaders: the [L,S] matrices that are only made when asked for: scores at a stage, or weights from a finished forward
// pass' statistics. It runs beside the forward pass, so that asking changes no bit of the output.
import { paramsText } from './params.js';
import { scoreText } from './score.js';
import {
  constantsText,
  loaderText,
  productStage,
  productText,
  range,
  threadsX,
  tiles,
} from './tile.js';

/** `params.stage`: the core's ScoreStage, and one more. */
export const weightsStage = 4;

/** A workgroup takes one tile of rows of one wanted head and one tile of keys. */
export function matrixText(): string {
  const tile = tiles.tall;
  const rows = range(tile.threadRows);
  return /* wgsl */ `
${paramsText()}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> stats: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<u32>;
@group(0) @binding(5) var<storage, read> extras: array<u32>;
@group(0) @binding(6) var<storage, read_write> out: array<u32>;
${constantsText(tile)}
${scoreText}
${loaderText('q', 'params.head_dim')}
${loaderText('k', 'params.head_dim')}
var<workgroup> stage: array<vec4f, ${productStage(tile)}>;

var<private> first_row: u32;
var<private> head_base: u32;

fn row_exists(row: u32) -> bool { return first_row + row < params.queries; }
fn row_base(row: u32) -> u32 { return head_base + (first_row + row) * params.q_row; }

// For keys j … j + 3.
fn elements(raw: vec4f, row: Row, j: u32, at: u32) -> vec4u {
  let scaled = raw * params.scale;
  if (params.stage == 1u) { return bitcast<vec4u>(scaled); }
  let capped = softcapped(scaled);
  if (params.stage == 2u) { return bitcast<vec4u>(capped); }
  let seen = visible_keys(row, j);
  let scores = biased(capped, row, j);
  if (params.stage == 3u) { return select(vec4u(MINUS_INFINITY), bitcast<vec4u>(scores), seen); }
  let factor = stats[at + params.batch * params.heads * params.queries];
  return select(vec4u(), bitcast<vec4u>(exp(scores - vec4f(stats[at])) * factor), seen);
}

@compute @workgroup_size(${threadsX}, ${tile.threadsY})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let work = params.first + group.x + group.y * params.grid_x;
  if (work >= params.end) { return; }
  let tx = t % ${threadsX}u;
  let ty = t / ${threadsX}u;
  let key_tiles = (params.keys + TILE_KEYS - 1u) / TILE_KEYS;
  let k0 = (work % key_tiles) * TILE_KEYS;
  let unit = work / key_tiles;
  first_row = (unit % params.row_tiles) * TILE_ROWS;
  let pair = unit / params.row_tiles;
  let b = pair / params.slots;
  let h = extras[params.heads_at + pair % params.slots];
  head_base = b * params.q_batch + h * params.q_head;
  let k_base = b * params.k_batch + h / (params.heads / params.kv_heads) * params.k_head;
  ${productText(tile)}
  ${rows
    .map(
      (r) => /* wgsl */ `
  if (row_exists(ty * ${tile.threadRows}u + ${r}u)) {
    let i = first_row + ty * ${tile.threadRows}u + ${r}u;
    let row = row_of(b, h, i, true);
    let at = (b * params.heads + h) * params.queries + i;
    let j = k0 + tx * 4u;
    let made = elements(s${r}, row, j, at);
    for (var c = 0u; c < 4u; c++) {
      if (j + c < params.keys) { out[(pair * params.queries + i) * params.keys + j + c] = made[c]; }
    }
  }`,
    )
    .join('')}
}
`;
}
