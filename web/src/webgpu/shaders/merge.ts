// WebGPU, shaders: merges the unscaled sums of a pass's key splits into finished rows. A workgroup takes one row of the pass.
import { paramsText } from './params.js';
import { finishText, numbersText } from './score.js';
import { constantsText, type Tile } from './tile.js';

export const mergeThreads = 64;

export function mergeText(tile: Tile): string {
  return /* wgsl */ `
${paramsText()}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read> parts: array<f32>;
@group(0) @binding(5) var<storage, read> extras: array<u32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<storage, read_write> stats: array<u32>;
${constantsText(tile)}
${numbersText}
${finishText}

@compute @workgroup_size(${mergeThreads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let work = params.first + group.x + group.y * params.grid_x;
  if (work >= params.end) { return; }
  let unit = params.first_unit + work / TILE_ROWS;
  let group_row = (unit % params.row_tiles) * TILE_ROWS + work % TILE_ROWS;
  if (group_row >= params.group_rows) { return; }
  let pair = unit / params.row_tiles;
  let b = pair / params.kv_heads;
  let h = (pair % params.kv_heads) * (params.heads / params.kv_heads) + group_row / params.queries;
  let i = group_row % params.queries;
  let rows = params.pass_units * TILE_ROWS;

  var top = LOWEST;
  for (var s = 0u; s < params.splits; s++) {
    if (parts[s * 2u * rows + rows + work] != 0.0) { top = max(top, parts[s * 2u * rows + work]); }
  }
  var total = 0.0;
  for (var s = 0u; s < params.splits; s++) {
    let part = parts[s * 2u * rows + rows + work];
    if (part != 0.0) { total += part * exp(parts[s * 2u * rows + work] - top); }
  }
  let factor = finished_factor(top, total, h);
  let target_at = b * params.out_batch + h * params.out_head + i * params.out_row;
  for (var c = t; c < params.value_dim; c += ${mergeThreads}u) {
    var value = 0.0;
    for (var s = 0u; s < params.splits; s++) {
      if (parts[s * 2u * rows + rows + work] != 0.0) {
        value += sums[(s * rows + work) * params.value_dim + c] * exp(parts[s * 2u * rows + work] - top);
      }
    }
    out[target_at + c] = value * factor;
  }
  if (t == 0u) {
    let all = params.batch * params.heads * params.queries;
    let at = (b * params.heads + h) * params.queries + i;
    stats[at] = bitcast<u32>(top);
    stats[at + all] = bitcast<u32>(factor);
    stats[at + 2u * all] = log_sum_exp(top, total);
  }
}
`;
}
