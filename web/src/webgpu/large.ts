// WebGPU: calls whose arrays are larger than a kernel may see: one piece after the other, so that no more than one lies on the
// device, and the results joined here.
import { residentOf } from '../resident.js';
import type { AttentionRequest, LinearRequest, Response } from '../request.js';
import { linearPieceRows } from './linear.js';
import { Assembly, pieceRequest } from './pieces.js';
import type { DeviceLimits } from './plan.js';
import { count, splitAttention, type Piece } from './split.js';

type Run = (piece: AttentionRequest | LinearRequest) => Promise<Response>;

const onHost = (array: Float32Array): Promise<Float32Array> | Float32Array =>
  residentOf(array)?.download() ?? array;

/** Whether a call that the GPU can do has to go in pieces. */
export function isLarge(request: AttentionRequest | LinearRequest, limits: DeviceLimits): boolean {
  if (request.op === 'linear') return linearPieceRows(request, limits) < request.rows;
  const pieces = splitAttention(request, limits.bindingBytes);
  return !Array.isArray(pieces) || pieces.length > 1;
}

/** `run` computes a piece. The results are on this side. */
export function runInPieces(
  request: AttentionRequest | LinearRequest,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  return request.op === 'linear'
    ? linearInPieces(request, limits, run)
    : attentionInPieces(request, limits, run);
}

async function attentionInPieces(
  request: AttentionRequest,
  limits: DeviceLimits,
  run: Run,
): Promise<Response> {
  const [q, k, v] = await Promise.all([request.q, request.k, request.v].map(onHost));
  const local = { ...request, q, k, v } as AttentionRequest;
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
  const x = await onHost(request.x);
  const output = new Float32Array(rows * out);
  for (let first = 0; first < rows; first += most) {
    const end = Math.min(first + most, rows);
    const own = x.subarray(first * request.in, end * request.in);
    const made = await run({ ...request, rows: end - first, x: own });
    output.set(made.output as Float32Array, first * out);
  }
  return { output };
}
