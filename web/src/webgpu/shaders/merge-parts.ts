// WebGPU, shaders: merges one more part of an attention over disjoint keys with what is merged so far, by their log-sum-exps. The
// WGSL twin of cpp/src/attention/merge.cc, one part at a time, so that their number needs no bindings. A workgroup takes a row.
import { numbersText } from './score.js';

const mergePartsThreads = 64;

export function mergePartsText(): string {
  return /* wgsl */ `
struct Params {
  heads: u32,
  rows: u32,
  size: u32,
  batch_stride: u32,
  head_stride: u32,
  row_stride: u32,
  /** The part is the first: nothing is merged so far. */
  is_first: u32,
  first: u32,
  end: u32,
  grid_x: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> part: array<f32>;
@group(0) @binding(2) var<storage, read> part_sums: array<u32>;
@group(0) @binding(6) var<storage, read_write> joined: array<f32>;
@group(0) @binding(7) var<storage, read_write> joined_sums: array<u32>;
${numbersText}

@compute @workgroup_size(${mergePartsThreads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = params.first + group.x + group.y * params.grid_x;
  if (row >= params.end) { return; }
  let head_row = row / params.rows;
  let at = head_row / params.heads * params.batch_stride + head_row % params.heads * params.head_stride
    + row % params.rows * params.row_stride;
  let own = part_sums[row];
  var before = joined_sums[row];
  if (params.is_first != 0u) { before = MINUS_INFINITY; }
  // Nobody may still have to read what the first thread writes below.
  storageBarrier();
  if (own == MINUS_INFINITY) {
    // A row that saw no key is left out, whatever it holds.
    if (params.is_first != 0u) {
      for (var c = t; c < params.size; c += ${mergePartsThreads}u) { joined[at + c] = 0.0; }
      if (t == 0u) { joined_sums[row] = MINUS_INFINITY; }
    }
    return;
  }
  if (before == MINUS_INFINITY) {
    for (var c = t; c < params.size; c += ${mergePartsThreads}u) { joined[at + c] = part[at + c]; }
    if (t == 0u) { joined_sums[row] = own; }
    return;
  }
  let a = bitcast<f32>(before);
  let b = bitcast<f32>(own);
  let top = max(a, b);
  let share_a = exp(a - top);
  let share_b = exp(b - top);
  let sum = share_a + share_b;
  for (var c = t; c < params.size; c += ${mergePartsThreads}u) {
    joined[at + c] = (joined[at + c] * share_a + part[at + c] * share_b) / sum;
  }
  if (t == 0u) { joined_sums[row] = bitcast<u32>(top + log(sum)); }
}
`;
}
