// WebGPU, shaders: attention forward as in attention.ts, written for adapters where waiting is dear and memory is near: every
// thread reads keys and values where they lie, and a tile of keys has two barriers, not twenty.
//
// SwiftShader, which computes on a CPU, is such an adapter: a barrier costs it 0.4 to 2 µs for every four threads, loads from
// workgroup memory cost more than loads from a buffer, and both sides of every branch are computed. Hence no code of options
// either: lengths, causality, window, groups and sinks are all there is, the rest is attention.ts's.
import { paramsText } from './params.js';
import { finishText, scoreText } from './score.js';
import {
  constantsText,
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

/** The tile's rows on half as many threads where that is possible: fewer threads wait, and each load serves more rows. */
export const directTile = (tile: Tile): Tile =>
  tile.threadRows === 4 ? { ...tile, threadsY: tile.threadsY / 2, threadRows: 8 } : tile;

/** Row stride of the tile of weights, in vec4s. */
const weightStride = tileKeys / 4;

/**
 * D, Dv and all strides are multiples of 4. A thread has `threadRows` rows × 4 keys of the scores, then × 4 · `vectors` columns of
 * values.
 */
export function directText(tile: Tile, vectors: 1 | 2, elements: Elements): string {
  const { threadRows } = tile;
  const rows = range(threadRows);
  const columns = range(vectors);
  const keys = range(4);
  const lines = (make: (r: number) => string, indent = 4): string =>
    rows.map(make).join(`\n${' '.repeat(indent)}`);
  const each = (make: (r: number, c: number) => string): string =>
    rows.flatMap((r) => columns.map((c) => make(r, c))).join(' ');
  const parts = ['x', 'y', 'z', 'w'] as const;
  const ofThread = (r: number): string => `(ty * ${threadRows}u + ${r}u)`;
  const loadValues = /* wgsl */ `
      ${keys
        .map(
          (key) =>
            `let at${key} = (v_base + min(k0 + g * 4u + ${key}u, params.keys - 1u) * params.v_row + column0) / 4u + tx;`,
        )
        .join('\n      ')}
      ${keys.flatMap((key) => columns.map((c) => `let v${key}${c} = v_vector(at${key} + ${c * threadsX}u);`)).join('\n      ')}
      ${keys.flatMap((key) => columns.map((c) => `let odd${key}${c} = is_unsafe(v${key}${c});`)).join('\n      ')}
      ${lines((r) => `let p${r} = weights[${ofThread(r)} * STRIDE + g];`, 6)}`;
  return /* wgsl */ `
${paramsText()}
${bindingsText(elements, 'vec4f')}
${constantsText(tile)}
const STRIDE = ${weightStride}u;
${scoreText}
${finishText}
${loadersText(elements)}
var<workgroup> weights: array<vec4f, ${tileRows(tile) * weightStride}>;
var<workgroup> shared_floats: array<f32, ${tileThreads(tile) * threadRows}>;
${unitText}

${beginText(tile, vectors)}
  let range = keys_of_rows(b, unit_row, split);
  ${lines(
    (
      r,
    ) => `let row${r} = row_of(b, head_of${ofThread(r)}, query_of${ofThread(r)}, row_exists${ofThread(r)});
  let row_at${r} = row_base(min(${ofThread(r)}, params.group_rows - 1u - unit_row)) / 4u;
  var top${r} = LOWEST; var sum${r} = 0.0; ${columns.map((c) => `var a${r}${c} = vec4f();`).join(' ')}`,
    2,
  )}

  for (var k0 = range.x / TILE_KEYS * TILE_KEYS; k0 < range.y; k0 += TILE_KEYS) {
    // Keys past the last are read as the last: no row sees them.
    ${keys.map((n) => `let key_at${n} = (k_base + min(k0 + tx * 4u + ${n}u, params.keys - 1u) * params.k_row) / 4u;`).join('\n    ')}
    ${lines((r) => `var s${r} = vec4f();`)}
    for (var d = 0u; d < params.head_dim / 4u; d++) {
      ${keys.map((n) => `let key${n} = k_vector(key_at${n} + d);`).join('\n      ')}
      ${lines((r) => `let query${r} = q_vector(row_at${r} + d); s${r} += vec4f(${keys.map((n) => `dot(query${r}, key${n})`).join(', ')});`, 6)}
    }
    let j = k0 + tx * 4u;
    ${lines((r) => `let seen${r} = keys_in_range(row${r}, j); s${r} *= params.scale;`)}
    ${lines(
      (r) => `{
      let most = select(vec4f(LOWEST), s${r}, seen${r});
      shared_floats[t * ${threadRows}u + ${r}u] = max(max(most.x, most.y), max(most.z, most.w));
    }`,
    )}
    workgroupBarrier();
    ${lines((r) => `var highest${r} = top${r};`)}
    for (var n = 0u; n < ${threadsX}u; n++) {
      let at = (ty * ${threadsX}u + n) * ${threadRows}u;
      ${lines((r) => `highest${r} = max(highest${r}, shared_floats[at + ${r}u]);`, 6)}
    }
    ${lines(
      (r) => `{
      let shrink = exp(top${r} - highest${r});
      top${r} = highest${r};
      var weight = select(vec4f(), exp(s${r} - vec4f(highest${r})), seen${r});
      sum${r} = sum${r} * shrink + weight.x + weight.y + weight.z + weight.w;
      ${columns.map((c) => `a${r}${c} *= shrink;`).join(' ')}
      weights[${ofThread(r)} * STRIDE + tx] = weight;
    }`,
    )}
    workgroupBarrier();

    // NaN and infinity are left out here and come after, where the weight is not 0: a hidden key is never multiplied.
    var odd = false;
    for (var g = 0u; g < ${tileKeys / 4}u && k0 + g * 4u < range.y; g++) {
      ${loadValues}
      odd = odd || ${keys.flatMap((key) => columns.map((c) => `any(odd${key}${c})`)).join(' || ')};
      ${keys.flatMap((key) => columns.map((c) => `let w${key}${c} = select(v${key}${c}, vec4f(), odd${key}${c});`)).join(' ')}
      ${parts.map((n, key) => each((r, c) => `a${r}${c} += p${r}.${n} * w${key}${c};`)).join('\n      ')}
    }
    for (var g = 0u; odd && g < ${tileKeys / 4}u && k0 + g * 4u < range.y; g++) {
      ${loadValues}
      ${parts
        .map((n, key) =>
          each(
            (r, c) =>
              `if ((bitcast<u32>(p${r}.${n}) << 1u) != 0u) { a${r}${c} += select(vec4f(), p${r}.${n} * v${key}${c}, odd${key}${c}); }`,
          ),
        )
        .join('\n      ')}
    }
  }

  // The scores' maxima of the last tile were read before its last barrier.
  ${lines((r) => `shared_floats[t * ${threadRows}u + ${r}u] = sum${r};`, 2)}
  workgroupBarrier();
  ${lines(
    (r) => `if (row_exists${ofThread(r)}) {
    let tile_row = ${ofThread(r)};
    var total = 0.0;
    for (var n = 0u; n < ${threadsX}u; n++) { total += shared_floats[(ty * ${threadsX}u + n) * ${threadRows}u + ${r}u]; }
    var factor = 1.0;
    var target_at = ((split * params.pass_units + unit - params.first_unit) * TILE_ROWS + tile_row) * params.value_dim;
    if (params.splits > 1u) {
      if (chunk == 0u && tx == 0u) {
        ${splitStatsText('tile_row', `top${r}`)}
      }
    } else {
      factor = finished_factor(top${r}, total, row${r}.head);
      target_at = b * params.out_batch + row${r}.head * params.out_head + row${r}.query * params.out_row;
      if (chunk == 0u && tx == 0u) {
        ${statsText(`row${r}`, `top${r}`)}
      }
    }
    ${columns
      .map(
        (c) =>
          `if (column0 + (tx + ${c * threadsX}u) * 4u < params.value_dim) { out[(target_at + column0) / 4u + tx + ${c * threadsX}u] = a${r}${c} * factor; }`,
      )
      .join('\n    ')}
  }`,
    2,
  )}
}
`;
}
