// WebGPU: from sizes and a device's limits to tiles, passes and dispatches. Pure: the same sizes and limits, the same plan.
import type { AttentionRequest } from '../request.js';
import { halfThreads } from './shaders/half.js';
import { linearTile } from './shaders/linear.js';
import { chunkColumns, tileKeys, tileRows, tiles, type Tile } from './shaders/tile.js';

/** What a plan must not exceed. */
export interface DeviceLimits {
  /** Bytes of one storage binding, and so of any array that a kernel sees. */
  bindingBytes: number;
  /** Workgroups in each dimension of a dispatch. */
  workgroups: number;
  /** Multiply-adds that a dispatch may hold: no more than about 100 ms on this device. */
  dispatchWork: number;
}

/** Workgroups first … end − 1 as a grid of x · y ≥ end − first. */
export interface Dispatch {
  first: number;
  end: number;
  x: number;
  y: number;
  work: number;
}

/** Units (row tiles of all batches and key/value heads) that are computed, then merged. */
export interface Pass {
  firstUnit: number;
  units: number;
  dispatches: Dispatch[];
  merges: Dispatch[];
}

export interface AttentionPlan {
  tile: Tile;
  /** Vec4s of value columns a thread, which tells the pipeline. */
  vectors: 1 | 2;
  rowTiles: number;
  columnChunks: number;
  splits: number;
  /** Keys of a split, a multiple of the tile's. */
  splitKeys: number;
  passes: Pass[];
  /** Floats of unmerged sums and of their statistics that a pass leaves; 0 with one split. */
  sumFloats: number;
  partFloats: number;
}

export type Sizes = Pick<
  AttentionRequest,
  'batch' | 'heads' | 'kvHeads' | 'queries' | 'keys' | 'headDim' | 'valueDim'
>;

// Fewer workgroups than this leave a large GPU idle; then the keys are split.
const wantedWorkgroups = 128;
// A split of fewer keys costs more in merging than it brings.
const leastSplitKeys = 256;
// One workgroup runs on one of a GPU's many units: it gets this share of a dispatch's work at most.
const workgroupShare = 16;
const mostPassBytes = 64 * 2 ** 20;

/** All sizes at least 1, but headDim, which may be 0. */
export function planAttention(sizes: Sizes, limits: DeviceLimits): AttentionPlan {
  const { batch, heads, kvHeads, queries, keys, headDim, valueDim } = sizes;
  const groupRows = (heads / kvHeads) * queries;
  const tile = groupRows <= tileRows(tiles.flat) * 2 ? tiles.flat : tiles.tall;
  const rows = tileRows(tile);
  const vectors = valueDim <= chunkColumns(1) ? 1 : 2;
  const columnChunks = Math.ceil(valueDim / chunkColumns(vectors));
  const rowTiles = Math.ceil(groupRows / rows);
  const units = batch * kvHeads * rowTiles;

  const keyWork = rows * (headDim + Math.min(valueDim, chunkColumns(vectors)));
  const mostKeys = Math.max(
    leastSplitKeys,
    Math.floor(limits.dispatchWork / workgroupShare / keyWork),
  );
  const forSize = Math.ceil(keys / mostKeys);
  const forUse = Math.min(
    Math.ceil(wantedWorkgroups / (units * columnChunks)),
    Math.ceil(keys / leastSplitKeys),
  );
  const splitKeys = Math.ceil(Math.ceil(keys / Math.max(forSize, forUse)) / tileKeys) * tileKeys;
  const splits = Math.ceil(keys / splitKeys);

  const unitFloats = splits === 1 ? 0 : splits * rows * valueDim;
  const passBytes = Math.min(mostPassBytes, limits.bindingBytes);
  const passUnits =
    unitFloats === 0
      ? units
      : Math.max(
          1,
          Math.min(units, Math.floor(passBytes / (4 * Math.max(unitFloats, 2 * splits * rows)))),
        );
  const passes: Pass[] = [];
  const perUnit = columnChunks * splits;
  for (let firstUnit = 0; firstUnit < units; firstUnit += passUnits) {
    const count = Math.min(passUnits, units - firstUnit);
    passes.push({
      firstUnit,
      units: count,
      dispatches: planDispatches(
        firstUnit * perUnit,
        (firstUnit + count) * perUnit,
        keyWork * Math.min(splitKeys, keys),
        limits,
      ),
      merges: splits === 1 ? [] : planDispatches(0, count * rows, splits * valueDim * 4, limits),
    });
  }
  return {
    tile,
    vectors,
    rowTiles,
    columnChunks,
    splits,
    splitKeys,
    passes,
    sumFloats: unitFloats * passUnits,
    partFloats: splits === 1 ? 0 : 2 * splits * rows * passUnits,
  };
}

/** Workgroups first … end − 1, of `work` multiply-adds each, as dispatches that no limit forbids. */
export function planDispatches(
  first: number,
  end: number,
  work: number,
  { workgroups, dispatchWork }: DeviceLimits,
): Dispatch[] {
  const most = Math.min(workgroups ** 2, Math.max(1, Math.floor(dispatchWork / Math.max(1, work))));
  const dispatches: Dispatch[] = [];
  for (let at = first; at < end; at += most) {
    const count = Math.min(most, end - at);
    const x = Math.min(count, workgroups);
    dispatches.push({ first: at, end: at + count, x, y: Math.ceil(count / x), work: count * work });
  }
  return dispatches;
}

/** The matrices' dispatches: one workgroup a row tile and key tile of each wanted head. */
export function planMatrix(sizes: Sizes, slots: number, limits: DeviceLimits): Dispatch[] {
  const rows = tileRows(tiles.tall);
  const workgroups =
    sizes.batch * slots * Math.ceil(sizes.queries / rows) * Math.ceil(sizes.keys / tileKeys);
  return planDispatches(0, workgroups, rows * tileKeys * Math.max(8, sizes.headDim), limits);
}

/** y [rows, columns] = x [rows, depth] · kernel. */
export function planLinear(
  rows: number,
  depth: number,
  columns: number,
  limits: DeviceLimits,
): Dispatch[] {
  const workgroups = Math.ceil(rows / linearTile.rows) * Math.ceil(columns / linearTile.columns);
  return planDispatches(0, workgroups, linearTile.rows * linearTile.columns * depth, limits);
}

/** A conversion of that many vec4s to halves. */
export function planHalf(vectors: number, limits: DeviceLimits): Dispatch[] {
  return planDispatches(0, Math.ceil(vectors / halfThreads), halfThreads * 4, limits);
}
