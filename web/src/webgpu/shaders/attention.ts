// WebGPU, shaders: attention forward over tiles of rows and keys with an online softmax (Dao et al., "FlashAttention", 2022).
// No L × S matrix is held. Baseline WebGPU: no subgroups, 16 KiB of workgroup memory, 7 storage buffers, f32.
//
// A workgroup takes one unit (a tile of rows of one key/value head; rows of all query heads that share it), one chunk of value
// columns and one split of the keys. With several splits it leaves unscaled sums to merge.ts.
import { paramsText } from './params.js';
import { dropoutText, finishText, scoreText } from './score.js';
import {
  constantsText,
  productStage,
  productText,
  range,
  threadsX,
  tileKeys,
  tileRows,
  tileThreads,
  type Elements,
  type Tile,
} from './tile.js';
import {
  beginText,
  bindingsText,
  loadersText,
  splitStatsText,
  statsText,
  unitText,
} from './unit.js';

/** Row stride of the tile of weights, in vec4s: one more than the keys need, so that rows begin in different banks. */
const weightStride = tileKeys / 4 + 1;

/** How the kernel is written; what it computes is the same. */
export interface Writing {
  /** Of q, k and v; but for 'scalar', D, Dv and all strides are multiples of 4. */
  elements: Elements;
  /** Rows are reduced by exchange within a subgroup, which must be of at least `lanesOf(tile)` threads, in order. */
  subgroups: boolean;
}

/** Threads that share a row's softmax. */
export const lanesOf = (tile: Tile): number => tileThreads(tile) / tileRows(tile);

export function attentionText(
  tile: Tile,
  vectors: 1 | 2,
  { elements, subgroups }: Writing = { elements: 'scalar', subgroups: false },
): string {
  const { threadRows } = tile;
  const rows = range(threadRows);
  const columns = range(vectors);
  const valueKeys = 16 / vectors; // keys of values in workgroup memory at a time
  const keyVectors = threadsX * vectors; // vec4s of one key's value chunk
  const stageSize = Math.max(productStage(tile), valueKeys * keyVectors);
  const lanes = lanesOf(tile);
  const ownVectors = tileKeys / 4 / lanes; // vec4s of scores that a thread has in the softmax
  const each = (make: (r: number, c: number) => string): string =>
    rows.flatMap((r) => columns.map((c) => make(r, c))).join('\n          ');
  const values = (key: string): string =>
    columns
      .map((c) => `let v${c} = stage[(g * 4u + ${key}) * ${keyVectors}u + ${c * threadsX}u + tx];`)
      .join(' ');
  const exchange = (operation: (a: string, b: string) => string, name: string): string =>
    Array.from({ length: Math.log2(lanes) }, (_, i) => 1 << i)
      .map((mask) => `${name} = ${operation(name, `subgroupShuffleXor(${name}, ${mask}u)`)};`)
      .join(' ');
  return /* wgsl */ `
${subgroups ? 'enable subgroups;' : ''}
${paramsText()}
${bindingsText(elements, 'f32')}
${constantsText(tile)}
const LANES = ${lanes}u;
const STRIDE = ${weightStride}u;
${scoreText}
${dropoutText}
${finishText}
${loadersText(elements)}
var<workgroup> weights: array<vec4f, ${tileRows(tile) * weightStride}>;
var<workgroup> stage: array<vec4f, ${stageSize}>;
var<workgroup> shared_floats: array<f32, ${tileThreads(tile)}>;
var<workgroup> row_factors: array<f32, ${tileRows(tile)}>;
// Not 0 once a value that is NaN or infinite was seen: from then on hidden keys are never multiplied.
var<workgroup> unsafe_values: atomic<u32>;

${unitText}
${beginText(tile, vectors)}

  if (t == 0u) { atomicStore(&unsafe_values, 0u); }

  let range = keys_of_rows(b, unit_row, split);
  let begin = range.x;
  let end = range.y;

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

    var most = vec4f(top);
    var seen = 0u; // a bit for each of this thread's scores
    for (var n = 0u; n < ${ownVectors}u; n++) {
      let at = own * STRIDE + n * LANES + lane;
      let j = k0 + (n * LANES + lane) * 4u;
      let here = visible_keys(row, j);
      let scores = biased(softcapped(weights[at] * params.scale), row, j);
      most = max(most, select(vec4f(LOWEST), scores, here));
      seen |= dot(select(vec4u(), vec4u(1u, 2u, 4u, 8u), here), vec4u(1u)) << (n * 4u);
      weights[at] = scores;
    }
    var highest = max(max(most.x, most.y), max(most.z, most.w));
    ${
      subgroups
        ? exchange((a, b) => `max(${a}, ${b})`, 'highest')
        : `shared_floats[t] = highest;
    workgroupBarrier();
    for (var n = 0u; n < LANES; n++) { highest = max(highest, shared_floats[own * LANES + n]); }`
    }
    let shrink = exp(top - highest);
    if (lane == 0u) { row_factors[own] = shrink; }
    top = highest;
    sum *= shrink;
    for (var n = 0u; n < ${ownVectors}u; n++) {
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
        if (any(is_unsafe(value))) { atomicOr(&unsafe_values, 1u); }
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

  ${
    subgroups
      ? `${exchange((a, b) => `${a} + ${b}`, 'sum')} workgroupBarrier();`
      : 'shared_floats[t] = sum; workgroupBarrier();'
  }
  if (lane == 0u) {
    var total = ${subgroups ? 'sum' : '0.0'};
    ${subgroups ? '' : 'for (var n = 0u; n < LANES; n++) { total += shared_floats[own * LANES + n]; }'}
    if (params.splits > 1u) {
      row_factors[own] = 1.0;
      if (chunk == 0u) {
        ${splitStatsText('own', 'top')}
      }
    } else {
      let factor = finished_factor(top, total, row.head);
      row_factors[own] = factor;
      if (chunk == 0u && row_exists(own)) {
        ${statsText('row', 'top')}
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
