// WebGPU: a piece of a large attention as a request of its own, and the pieces' results as the whole's. What several ranges
// of keys gave is merged by their log-sum-exps (Dao et al., "FlashAttention", 2022). No GPU here.
import { count, slotsOf, type Piece, type Range } from '../options/cut.js';
import { cutSettings } from '../options/settings.js';
import type { AttentionRequest, AttentionSettings, Response, Strides } from '../request.js';
import { kvRange, wholeOf } from './array-bytes.js';

/** Rows of a tensor [batch, head, row, size] with those strides, packed. */
export function gather(
  data: Float32Array,
  strides: Strides,
  size: number,
  batches: Range,
  heads: Range,
  rows: Range,
): Float32Array {
  const packed = new Float32Array(count(batches) * count(heads) * count(rows) * size);
  let at = 0;
  for (let b = batches.first; b < batches.end; b++) {
    for (let h = heads.first; h < heads.end; h++) {
      const base = b * strides[0] + h * strides[1];
      if (strides[2] === size) {
        packed.set(data.subarray(base + rows.first * size, base + rows.end * size), at);
        at += count(rows) * size;
        continue;
      }
      for (let r = rows.first; r < rows.end; r++, at += size)
        packed.set(data.subarray(base + r * strides[2], base + r * strides[2] + size), at);
    }
  }
  return packed;
}

const packedStrides = (heads: Range, rows: Range, size: number): Strides => [
  count(heads) * count(rows) * size,
  count(rows) * size,
  size,
];

/** A piece as a request of its own. */
export function pieceRequest(
  request: AttentionRequest,
  piece: Piece,
  isOneOfSeveralKeyRanges: boolean,
): AttentionRequest {
  const { batches, heads, queries, keys } = piece;
  const groups = kvRange(request, heads);
  const { headDim, valueDim } = request;
  return {
    ...cutSettings(request, { ...piece, isOneOfSeveralKeyRanges }),
    isPlain: false, // lengths are set
    kvHeads: count(groups),
    q: gather(request.q, request.qStrides, headDim, batches, heads, queries),
    k: gather(request.k, request.kStrides, headDim, batches, groups, keys),
    v: gather(request.v, request.vStrides, valueDim, batches, groups, keys),
    qStrides: packedStrides(heads, queries, headDim),
    kStrides: packedStrides(groups, keys, headDim),
    vStrides: packedStrides(groups, keys, valueDim),
    outStrides: packedStrides(heads, queries, valueDim),
  };
}

/** A call's batches first … end − 1; its tensors stay as they are. */
export function batchesOf<S extends AttentionSettings>(settings: S, batches: Range): S {
  return cutSettings(settings, {
    ...wholeOf(settings),
    batches,
    isOneOfSeveralKeyRanges: false,
  });
}

/** The whole's results, as pieces come in. */
export class Assembly {
  readonly #request: AttentionRequest;
  readonly #several: boolean;
  readonly #slots: number;
  readonly #response: Response & { output: Float32Array };
  /** Ranges of keys of the same rows, until the last has come. */
  #waiting: { piece: Piece; response: Response }[] = [];

  constructor(request: AttentionRequest, severalKeyRanges: boolean) {
    this.#several = severalKeyRanges;
    const { batch, heads, queries, keys, valueDim, weightHeads, scoreStage } = request;
    this.#request = request;
    this.#slots = weightHeads === 'all' ? heads : (weightHeads?.length ?? 0);
    const rows = batch * heads * queries;
    this.#response = { output: new Float32Array(rows * valueDim) };
    if (weightHeads !== undefined)
      this.#response.weights = new Float32Array(batch * this.#slots * queries * keys);
    if (scoreStage !== 0) this.#response.scores = new Float32Array(rows * keys);
    if (request.logSumExp) this.#response.logSumExp = new Float32Array(rows);
  }

  add(piece: Piece, response: Response): void {
    this.#waiting.push({ piece, response });
    if (piece.keys.end < this.#request.keys) return;
    this.#place(this.#waiting);
    this.#waiting = [];
  }

  get response(): Response {
    return this.#response;
  }

  #place(parts: readonly { piece: Piece; response: Response }[]): void {
    const { heads, queries, keys, valueDim, outStrides, sinks } = this.#request;
    const { output, weights, scores, logSumExp } = this.#response;
    const { piece } = parts[0] as (typeof parts)[0];
    const nh = count(piece.heads);
    const nq = count(piece.queries);
    const slots = slotsOf(this.#request, piece.heads);
    const factors = new Float64Array(parts.length).fill(1);
    const put = (target: Float32Array, at: number, name: 'weights' | 'scores', row: number) => {
      parts.forEach(({ piece: { keys: range }, response }, p) => {
        const width = count(range);
        const from = (response[name] as Float32Array).subarray(row * width, (row + 1) * width);
        target.set(from, at + range.first);
        const factor = factors[p] as number;
        if (name === 'scores' || factor === 1) return;
        for (let j = 0; j < width; j++) {
          const place = at + range.first + j;
          target[place] = (target[place] as number) * factor;
        }
      });
    };
    for (let n = 0; n < count(piece.batches); n++)
      for (let m = 0; m < nh; m++)
        for (let r = 0; r < nq; r++) {
          const [b, h, i] = [
            piece.batches.first + n,
            piece.heads.first + m,
            piece.queries.first + r,
          ];
          const row = (n * nh + m) * nq + r;
          if (this.#several) {
            const total = share(parts, row, factors, sinks?.[h]);
            if (logSumExp) logSumExp[(b * heads + h) * queries + i] = total;
          } else if (logSumExp) {
            const own = (parts[0] as (typeof parts)[0]).response.logSumExp as Float32Array;
            logSumExp[(b * heads + h) * queries + i] = own[row] as number;
          }
          const at = b * outStrides[0] + h * outStrides[1] + i * outStrides[2];
          parts.forEach(({ response }, p) => {
            const from = response.output as Float32Array;
            const factor = factors[p] as number;
            if (factor === 0) return; // saw no key
            for (let d = 0; d < valueDim; d++) {
              const place = at + d;
              output[place] =
                (output[place] as number) + (from[row * valueDim + d] as number) * factor;
            }
          });
          if (scores !== undefined)
            put(scores, ((b * heads + h) * queries + i) * keys, 'scores', row);
          slots.forEach(({ slot, head }, s) => {
            if (weights === undefined || head !== m) return;
            put(
              weights,
              ((b * this.#slots + slot) * queries + i) * keys,
              'weights',
              (n * slots.length + s) * nq + r,
            );
          });
        }
  }
}

/** Fills in each part's share of a row's weights, and returns the row's log-sum-exp. */
function share(
  parts: readonly { response: Response }[],
  row: number,
  factors: Float64Array,
  sink: number | undefined,
): number {
  const sums = parts.map(({ response }) => (response.logSumExp as Float32Array)[row] as number);
  const top = sums.reduce((most, sum) => Math.max(most, sum), -Infinity);
  if (top === -Infinity) {
    factors.fill(0);
    return top;
  }
  const total = top + Math.log(sums.reduce((sum, x) => sum + Math.exp(x - top), 0));
  // The sink is one more logit of the denominator, without a value.
  const kept = sink === undefined ? 1 : 1 / (1 + Math.exp(sink - total));
  sums.forEach((x, p) => (factors[p] = x === -Infinity ? 0 : Math.exp(x - total) * kept));
  return total;
}
