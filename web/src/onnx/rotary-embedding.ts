// ONNX: the operators RotaryEmbedding of ai.onnx and of com.microsoft, which differ in their inputs' order and positions.
import { invalidShape, unsupported } from '../errors.js';
import { readFinite, readInteger, readOptions } from '../validation/options.js';
import { maxSize } from '../validation/shapes.js';
import { headsTensor } from './attend.js';
import { headsOfRank3, headsOfRank4, type Heads } from './heads.js';
import { checkPositions, checkRotarySize, checkTables, rotated } from './rotation.js';
import {
  checkSameType,
  readFlag,
  readFloatTensor,
  readIntegerTensor,
  type FloatTensor,
  type OnnxIntegersLike,
  type OnnxTensor,
  type OnnxTensorLike,
} from './tensors.js';

/** Inputs of {@link rotaryEmbedding}, by ONNX's names. */
export interface RotaryEmbeddingInputs {
  /** `[B,H,L,D]`, or `[B,L,H·D]` with `num_heads`. */
  X: OnnxTensorLike;
  /** `[positions, r/2]` with `position_ids`, else `[B,L,r/2]`; r is `rotary_embedding_dim`, or D. */
  cos_cache: OnnxTensorLike;
  /** As `cos_cache`. */
  sin_cache: OnnxTensorLike;
  /** `[B,L]`: rows of the caches. */
  position_ids?: OnnxIntegersLike | undefined;
}

/** Attributes of {@link rotaryEmbedding}. */
export interface RotaryEmbeddingAttributes {
  /** Pairs are neighbours rather than halves. Default 0. */
  interleaved?: number | boolean | undefined;
  /** H; needed for rank 3. */
  num_heads?: number | undefined;
  /** r: how many numbers of a row turn. Default 0, all. */
  rotary_embedding_dim?: number | undefined;
}

const inputNames = new Set(['X', 'cos_cache', 'sin_cache', 'position_ids']);
const attributeNames = new Set(['interleaved', 'num_heads', 'rotary_embedding_dim']);

/**
 * ONNX RotaryEmbedding, opset 23 (https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html). Computed in double, rounded
 * once to the type of X. Runs at once, on the calling thread.
 *
 * @throws TypeError `INVALID_TYPE`, RangeError `INVALID_SHAPE` or `INVALID_VALUE`.
 */
export function rotaryEmbedding(
  inputs: RotaryEmbeddingInputs,
  attributes?: RotaryEmbeddingAttributes,
): { Y: OnnxTensor } {
  const given = readOptions('inputs', inputs, inputNames);
  const attrs = readOptions('attributes', attributes, attributeNames);
  const X = readFloatTensor('X', given.X);
  const { cos, sin } = readTables(given, 'X', X);
  const x =
    X.shape.length === 3
      ? headsOfRank3('X', X, 'num_heads', readInteger('num_heads', attrs.num_heads, 1, maxSize))
      : headsOfRank4('X', X);
  const turning = readInteger('rotary_embedding_dim', attrs.rotary_embedding_dim ?? 0, 0, maxSize);
  const pairs = checkRotarySize('rotary_embedding_dim', turning, x.size) / 2;
  const interleaved = readFlag('interleaved', attrs.interleaved);
  const rowOf =
    given.position_ids === undefined
      ? readRows(cos, sin, x, pairs)
      : readPositions(given.position_ids, cos, sin, x, pairs);
  return { Y: headsTensor(rotated(x, { cos, sin, pairs, rowOf, interleaved })) };
}

function readTables(
  given: Record<string, unknown>,
  name: string,
  x: FloatTensor,
): { cos: FloatTensor; sin: FloatTensor } {
  const cos = readFloatTensor('cos_cache', given.cos_cache);
  const sin = readFloatTensor('sin_cache', given.sin_cache);
  checkSameType('cos_cache', cos, name, x);
  checkSameType('sin_cache', sin, name, x);
  return { cos, sin };
}

type RowOf = (batch: number, position: number) => number;

// Tables with a row for each row of X.
function readRows(cos: FloatTensor, sin: FloatTensor, x: Heads, pairs: number): RowOf {
  checkTables(cos, sin, 3, pairs);
  if (cos.shape[0] !== x.batch || cos.shape[1] !== x.rows) {
    throw invalidShape(
      `cos_cache: shape [${x.batch},${x.rows},${pairs}] ([B,L,r/2], without position_ids) wanted, got [${cos.shape}]`,
    );
  }
  return (b, i) => b * x.rows + i;
}

function readPositions(
  value: unknown,
  cos: FloatTensor,
  sin: FloatTensor,
  x: Heads,
  pairs: number,
): RowOf {
  checkTables(cos, sin, 2, pairs);
  const { data, shape } = readIntegerTensor('position_ids', value);
  if (shape.length !== 2 || shape[0] !== x.batch || shape[1] !== x.rows) {
    throw invalidShape(`position_ids: shape [${x.batch},${x.rows}] ([B,L]) wanted, got [${shape}]`);
  }
  checkPositions('position_ids', data, cos.shape[0] as number);
  return (b, i) => data[b * x.rows + i] as number;
}

/** Inputs of {@link microsoftRotaryEmbedding}, by ONNX Runtime's names. */
export interface MicrosoftRotaryEmbeddingInputs {
  /** `[B,H,L,D]` or `[B,L,H·D]`. */
  input: OnnxTensorLike;
  /** `[B,L]`: rows of the caches; or one element: the first row's, which the others follow. */
  position_ids: OnnxIntegersLike;
  /** `[positions, r/2]`. */
  cos_cache: OnnxTensorLike;
  /** As `cos_cache`. */
  sin_cache: OnnxTensorLike;
}

/** Attributes of {@link microsoftRotaryEmbedding}. */
export interface MicrosoftRotaryEmbeddingAttributes extends RotaryEmbeddingAttributes {
  /** Only 1, the default. */
  scale?: number | undefined;
  /** Only 0, the default. */
  is_packed_batching?: number | undefined;
}

const microsoftInputNames = new Set(['input', 'position_ids', 'cos_cache', 'sin_cache']);
const microsoftAttributeNames = new Set([...attributeNames, 'scale', 'is_packed_batching']);

/**
 * ONNX Runtime's RotaryEmbedding (com.microsoft). Without `num_heads` and `rotary_embedding_dim` a row of rank 3 is heads as
 * wide as the caches are for.
 *
 * @throws As {@link rotaryEmbedding}; HeadwiseError `UNSUPPORTED` for a `scale` or packed batches.
 */
export function microsoftRotaryEmbedding(
  inputs: MicrosoftRotaryEmbeddingInputs,
  attributes?: MicrosoftRotaryEmbeddingAttributes,
): { output: OnnxTensor } {
  const given = readOptions('inputs', inputs, microsoftInputNames);
  const attrs = readOptions('attributes', attributes, microsoftAttributeNames);
  if (attrs.scale !== undefined && readFinite('scale', attrs.scale) !== 1)
    throw unsupported(`scale: only 1 is supported, got ${attrs.scale}`);
  if (readFlag('is_packed_batching', attrs.is_packed_batching))
    throw unsupported('is_packed_batching: packed batches are not supported');
  const input = readFloatTensor('input', given.input);
  const { cos, sin } = readTables(given, 'input', input);
  const interleaved = readFlag('interleaved', attrs.interleaved);
  const width = 2 * (cos.shape[cos.shape.length - 1] ?? 0);
  const x = readInput(input, attrs.num_heads, width);
  const turning = readInteger('rotary_embedding_dim', attrs.rotary_embedding_dim ?? 0, 0, maxSize);
  // Caches narrower than a head turn just so much of it.
  const pairs =
    checkRotarySize('rotary_embedding_dim', turning === 0 ? width : turning, x.size) / 2;

  const { data, shape } = readIntegerTensor('position_ids', given.position_ids);
  const isOffset = data.length === 1 && shape.length < 2;
  const rowOf = isOffset
    ? (_: number, i: number) => (data[0] as number) + i
    : readPositions(given.position_ids, cos, sin, x, pairs);
  if (isOffset) {
    checkTables(cos, sin, 2, pairs);
    const rows = cos.shape[0] as number;
    const last = (data[0] as number) + Math.max(x.rows - 1, 0);
    checkPositions('position_ids', [data[0] as number, last], rows);
  }
  return { output: headsTensor(rotated(x, { cos, sin, pairs, rowOf, interleaved })) };
}

function readInput(input: FloatTensor, numHeads: unknown, width: number): Heads {
  if (input.shape.length !== 3) return headsOfRank4('input', input);
  const count = readInteger('num_heads', numHeads ?? 0, 0, maxSize);
  if (count > 0) return headsOfRank3('input', input, 'num_heads', count);
  const whole = input.shape[2] as number;
  if (width === 0 || whole % width !== 0) {
    throw invalidShape(
      `input: a last axis that twice cos_cache's width, ${width}, divides wanted, got shape [${input.shape}]`,
    );
  }
  return headsOfRank3('input', input, 'the number of heads', whole / width);
}
