// WebGPU, shaders: y = x · kernel (+ bias), the layer's projections: x [rows, in], kernel [in, out], bias [out].
import { loaderText, range, threadsX, tiles, tileRows, tileThreads } from './tile.js';

/** Rows and columns of y a workgroup makes. */
export const linearTile = { rows: tileRows(tiles.tall), columns: threadsX * 4 };

const depth = 16;

export function linearText(): string {
  const tile = tiles.tall;
  const rows = range(tile.threadRows);
  return /* wgsl */ `
struct Params {
  rows: u32,
  depth: u32,
  columns: u32,
  has_bias: u32,
  /** Rows of a batch whose first lengths[batch] are kept and whose others become 0; 0: all are kept. */
  batch_rows: u32,
  first: u32,
  end: u32,
  grid_x: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> kernel: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> lengths: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
const THREADS = ${tileThreads(tile)}u;
${loaderText('x', 'params.depth')}
${loaderText('kernel', 'params.columns')}
${loaderText('bias', 'params.columns')}
var<workgroup> x_stage: array<vec4f, ${linearTile.rows * (depth / 4)}>;
var<workgroup> kernel_stage: array<vec4f, ${depth * threadsX}>;

@compute @workgroup_size(${threadsX}, ${tile.threadsY})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let work = params.first + group.x + group.y * params.grid_x;
  if (work >= params.end) { return; }
  let tx = t % ${threadsX}u;
  let ty = t / ${threadsX}u;
  let column_tiles = (params.columns + ${linearTile.columns - 1}u) / ${linearTile.columns}u;
  let row0 = work / column_tiles * ${linearTile.rows}u;
  let column0 = (work % column_tiles) * ${linearTile.columns}u;
  var sums = array<vec4f, ${tile.threadRows}>();
  ${rows.map((r) => `var s${r} = vec4f();`).join(' ')}
  for (var d0 = 0u; d0 < params.depth; d0 += ${depth}u) {
    workgroupBarrier();
    for (var e = t; e < ${linearTile.rows * (depth / 4)}u; e += THREADS) {
      let row = row0 + e / ${depth / 4}u;
      var value = vec4f();
      if (row < params.rows) { value = x_at(row * params.depth, d0 + (e % ${depth / 4}u) * 4u); }
      x_stage[e] = value;
    }
    for (var e = t; e < ${depth * threadsX}u; e += THREADS) {
      let d = d0 + e / ${threadsX}u;
      var value = vec4f();
      if (d < params.depth) { value = kernel_at(d * params.columns, column0 + (e % ${threadsX}u) * 4u); }
      kernel_stage[e] = value;
    }
    workgroupBarrier();
    for (var g = 0u; g < ${depth / 4}u; g++) {
      ${rows.map((r) => `let x${r} = x_stage[(ty * ${tile.threadRows}u + ${r}u) * ${depth / 4}u + g];`).join('\n      ')}
      ${['x', 'y', 'z', 'w']
        .map(
          (n, i) => `let w${i} = kernel_stage[(g * 4u + ${i}u) * ${threadsX}u + tx];
      ${rows.map((r) => `s${r} += x${r}.${n} * w${i};`).join(' ')}`,
        )
        .join('\n      ')}
    }
  }
  ${rows.map((r) => `sums[${r}] = s${r};`).join(' ')}
  let column = column0 + tx * 4u;
  var offset = vec4f();
  if (params.has_bias != 0u) { offset = bias_at(0u, column); }
  for (var r = 0u; r < ${tile.threadRows}u; r++) {
    let row = row0 + ty * ${tile.threadRows}u + r;
    if (row >= params.rows) { continue; }
    var value = sums[r] + offset;
    if (params.batch_rows != 0u && row % params.batch_rows >= lengths[row / params.batch_rows]) { value = vec4f(); }
    for (var c = 0u; c < 4u; c++) {
      if (column + c < params.columns) { y[row * params.columns + column + c] = value[c]; }
    }
  }
}
`;
}
