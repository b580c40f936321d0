// WebGPU: calls whose arrays are larger than a kernel may see: one piece after the other, so that no more than one lies on the
// device, and the results concatenate here.
import { onHost } from '../resident.js';
import {
  concatenate,
  resultNames,
  type AttentionRequest,
  type LayerConfig,
  type LayerForwardRequest,
  type LinearRequest,
  type Response,
} from '../request.js';
import { layerPieceBatches } from './layer.js';
import { linearPieceRows } from './linear.js';
import { Assembly, batchesOf, pieceRequest } from './pieces.js';
import { count, type Piece } from '../options/cut.js';
import type { DeviceLimits } from './plan.js';
import { fitsWhole, splitAttention } from './split.js';

/** What can go in pieces; a layer's call with the layer's configuration. */
export type LargeRequest = AttentionRequest | LinearRequest | LayerForwardRequest;

type Run = (piece: LargeRequest) => Promise<Response>;

/** Whether a call that the GPU can do has to go in pieces. `config`: a layer's. */
export function isLarge(
  request: LargeRequest,
  config: LayerConfig | undefined,
  limits: DeviceLimits,
): boolean {
  switch (request.op) {
    case 'linear':
      return linearPieceRows(request, limits) < request.rows;
    case 'layerForward':
      return layerPieceBatches(config as LayerConfig, request, limits) < request.batch;
    case 'attention':
      return !fitsWhole(request, limits.bindingBytes);
  }
}

/** `run` computes a piece. The results are on this side. */
export function runInPieces(
  request: LargeRequest,
  config: LayerConfig | undefined,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  switch (request.op) {
    case 'linear':
      return linearInPieces(request, limits, run);
    case 'layerForward':
      return layerInPieces(request, config as LayerConfig, limits, run);
    case 'attention':
      return attentionInPieces(request, limits, run);
  }
}

async function layerInPieces(
  request: LayerForwardRequest,
  config: LayerConfig,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  const { batch, queries, keys } = request;
  const most = layerPieceBatches(config, request, limits);
  const [query, key, value] = await onHost(request.query, request.key, request.value);
  const parts: Response[] = [];
  for (let first = 0; first < batch; first += most) {
    const range = { first, end: Math.min(first + most, batch) };
    const rows = (x: Float32Array, perBatch: number): Float32Array =>
      x.subarray(range.first * perBatch, range.end * perBatch);
    parts.push(
      await run({
        ...batchesOf(request, range),
        query: rows(query, queries * config.embedDim),
        key: rows(key, keys * config.keyDim),
        value: rows(value, keys * config.valueDim),
        resident: false,
      }),
    );
  }
  // Every result begins with the batch's axis.
  const response: Response = {};
  for (const name of resultNames) {
    const arrays = parts.map((part) => part[name]);
    if (arrays[0] !== undefined) response[name] = concatenate(arrays as Float32Array[]);
  }
  return response;
}

async function attentionInPieces(
  request: AttentionRequest,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  const [q, k, v] = await onHost(request.q, request.k, request.v);
  const local = { ...request, q, k, v };
  const pieces = splitAttention(local, limits.bindingBytes) as Piece[];
  const several = pieces.some(({ keys }) => count(keys) < local.keys);
  const assembly = new Assembly(local, several);
  for (const piece of pieces) assembly.add(piece, await run(pieceRequest(local, piece, several)));
  return assembly.response;
}

async function linearInPieces(
  request: LinearRequest,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  const { rows, out } = request;
  const most = linearPieceRows(request, limits);
  const [x] = await onHost(request.x);
  const output = new Float32Array(rows * out);
  for (let first = 0; first < rows; first += most) {
    const end = Math.min(first + most, rows);
    const own = x.subarray(first * request.in, end * request.in);
    const made = await run({ ...request, rows: end - first, x: own });
    output.set(made.output as Float32Array, first * out);
  }
  return { output };
}
