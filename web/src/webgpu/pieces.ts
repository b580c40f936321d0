// WebGPU: a piece of a large attention as a request of its own, and the pieces' results as the whole's. What several ranges
// of keys gave is joined by their log-sum-exps (Dao et al., "FlashAttention", 2022). No GPU here.
import type {
  AttentionRequest,
  AttentionSettings,
  BroadcastStrides,
  Response,
  Strides,
} from '../request.js';
import { lengthsOf } from './inputs.js';
import { count, kvRange, type Piece, type Range } from './split.js';

type AnyArray = Float32Array | Int32Array | Uint8Array;

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

/** A broadcast array's part, packed; axes along which it is repeated stay so. */
function gatherBroadcast<A extends Float32Array | Uint8Array>(
  { data, strides }: { data: A; strides: BroadcastStrides },
  { batches, heads, queries, keys }: Piece,
): { data: A; strides: BroadcastStrides } {
  const ranges = [batches, heads, queries, keys].map((range, axis) =>
    strides[axis] === 0 ? { first: 0, end: 1 } : range,
  ) as [Range, Range, Range, Range];
  const sizes = ranges.map(count) as [number, number, number, number];
  const packed = new (data.constructor as new (length: number) => A)(
    sizes.reduce((a, b) => a * b, 1),
  );
  let at = 0;
  for (let b = ranges[0].first; b < ranges[0].end; b++)
    for (let h = ranges[1].first; h < ranges[1].end; h++)
      for (let i = ranges[2].first; i < ranges[2].end; i++) {
        const base = b * strides[0] + h * strides[1] + i * strides[2];
        if (strides[3] <= 1) {
          packed.set(data.subarray(base + ranges[3].first, base + ranges[3].end), at);
          at += sizes[3];
        } else {
          for (let j = ranges[3].first; j < ranges[3].end; j++)
            packed[at++] = data[base + j * strides[3]] as number;
        }
      }
  const own = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1];
  return {
    data: packed,
    strides: own.map((stride, axis) => (strides[axis] === 0 ? 0 : stride)) as BroadcastStrides,
  };
}

const cut = <A extends AnyArray>(array: A, { first, end }: Range): A =>
  array.slice(first, end) as A;

/** Places of the wanted heads that a piece has: their slots in the whole, and their numbers in the piece. */
function slotsOf(request: AttentionRequest, heads: Range): { slot: number; head: number }[] {
  const { weightHeads } = request;
  if (weightHeads === undefined) return [];
  const wanted =
    weightHeads === 'all' ? Array.from({ length: request.heads }, (_, h) => h) : [...weightHeads];
  return wanted
    .map((head, slot) => ({ slot, head: head - heads.first }))
    .filter(({ head }) => head >= 0 && head < count(heads));
}

const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most);

/** With several ranges of keys, sinks are left to the joining. */
export function pieceRequest(
  request: AttentionRequest,
  piece: Piece,
  severalKeyRanges: boolean,
): AttentionRequest {
  const { batches, heads, queries, keys } = piece;
  const groups = kvRange(request, heads);
  const { headDim, valueDim } = request;
  const nb = count(batches);
  const kvLengths = new Int32Array(nb);
  const qLengths = new Int32Array(nb);
  const causalOffsets = new Int32Array(nb);
  for (let n = 0; n < nb; n++) {
    const { kvLength, qLength, offset } = lengthsOf(request, batches.first + n);
    kvLengths[n] = clamp(kvLength - keys.first, count(keys));
    qLengths[n] = clamp(qLength - queries.first, count(queries));
    causalOffsets[n] = offset + queries.first - keys.first;
  }
  const { bias, mask, keyPaddingMask, alibiSlopes, sinks, weightHeads, ...rest } = request;
  const result: AttentionRequest = {
    ...rest,
    batch: nb,
    heads: count(heads),
    kvHeads: count(groups),
    queries: count(queries),
    keys: count(keys),
    ...{ kvLengths, qLengths, causalOffsets },
    q: gather(request.q, request.qStrides, headDim, batches, heads, queries),
    k: gather(request.k, request.kStrides, headDim, batches, groups, keys),
    v: gather(request.v, request.vStrides, valueDim, batches, groups, keys),
    qStrides: packedStrides(heads, queries, headDim),
    kStrides: packedStrides(groups, keys, headDim),
    vStrides: packedStrides(groups, keys, valueDim),
    outStrides: packedStrides(heads, queries, valueDim),
    logSumExp: request.logSumExp || severalKeyRanges,
    resident: false,
  };
  if (bias !== undefined) result.bias = gatherBroadcast(bias, piece);
  if (mask !== undefined) result.mask = gatherBroadcast(mask, piece);
  if (keyPaddingMask !== undefined) {
    const strides: BroadcastStrides = [request.keys, 0, 0, 1];
    result.keyPaddingMask = gatherBroadcast({ data: keyPaddingMask, strides }, piece).data;
  }
  if (alibiSlopes !== undefined) result.alibiSlopes = cut(alibiSlopes, heads);
  if (sinks !== undefined && !severalKeyRanges) result.sinks = cut(sinks, heads);
  if (weightHeads !== undefined)
    result.weightHeads = Int32Array.from(slotsOf(request, heads), ({ head }) => head);
  return result;
}

/** A call's batches first … end − 1; its tensors stay as they are. */
export function batchesOf<S extends AttentionSettings>(settings: S, batches: Range): S {
  const { batch, heads, queries, keys } = settings;
  const whole = (end: number): Range => ({ first: 0, end });
  const piece = { batches, heads: whole(heads), queries: whole(queries), keys: whole(keys) };
  const result = { ...settings, batch: count(batches) };
  if (count(batches) === batch) return result;
  for (const name of ['kvLengths', 'qLengths', 'causalOffsets'] as const) {
    const array = settings[name];
    if (array !== undefined) result[name] = cut(array, batches);
  }
  if (settings.bias !== undefined) result.bias = gatherBroadcast(settings.bias, piece);
  if (settings.mask !== undefined) result.mask = gatherBroadcast(settings.mask, piece);
  const { keyPaddingMask } = settings;
  if (keyPaddingMask !== undefined)
    result.keyPaddingMask = keyPaddingMask.slice(batches.first * keys, batches.end * keys);
  return result;
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
