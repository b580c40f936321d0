// Validation: a layer's forward call and the small operations around it, to requests.
import type { TensorLike } from '../tensor-like.js';
import type { FloatsLike, IntegersLike } from '../tensor-types.js';
import { invalidShape, invalidValue, outOfMemory } from '../errors.js';
import type {
  EmbeddingRequest,
  LayerConfig,
  LayerForwardRequest,
  LinearRequest,
  PositionalEncodingRequest,
} from '../request.js';
import type { CheckedCall } from './attention.js';
import { maskingOptionNames, readAttentionSettings } from '../options/settings.js';
import { readOut } from '../options/readers.js';
import { readSignal } from './options.js';
import type { MaskingOptions } from '../options/masking-options.js';
import { readBoolean, readInteger, readOptions } from './options.js';
import {
  checkShape,
  maxSize,
  product,
  readAnyFloats,
  readAnyIntegers,
  readTensor,
} from './shapes.js';

/** Options of a layer's `forward`. */
export interface ForwardOptions extends MaskingOptions {
  /** Return the weights' mean over all heads, `[B,L,S]`, as `weights`. Default false. */
  averageWeights?: boolean | undefined;
}

const forwardNames = new Set<string>([...maskingOptionNames, 'averageWeights']);

export function readForward(
  layer: number,
  config: LayerConfig,
  queryValue: TensorLike,
  keyValue: TensorLike | undefined,
  valueValue: TensorLike | undefined,
  optionsValue: ForwardOptions | undefined,
): CheckedCall<LayerForwardRequest> {
  const query = readTensor('query', queryValue);
  const key = keyValue === undefined ? query : readTensor('key', keyValue);
  const value = valueValue === undefined ? key : readTensor('value', valueValue);
  const options = readOptions('options', optionsValue, forwardNames);
  const rank = query.shape.length;
  if (rank !== 2 && rank !== 3) {
    throw invalidShape(`query: [B,L,E] or [L,E] wanted, got shape [${query.shape}]`);
  }
  for (const [name, { shape }] of [
    ['key', key],
    ['value', value],
  ] as const) {
    if (shape.length !== rank) {
      throw invalidShape(
        `${name}: rank ${rank} like query's [${query.shape}] wanted, got shape [${shape}]`,
      );
    }
  }
  const sizes = (shape: number[]) =>
    (rank === 3 ? shape : [1, ...shape]) as [number, number, number];
  const [batch, queries, embedDim] = sizes(query.shape);
  const [keyBatch, keys, keyDim] = sizes(key.shape);
  const [valueBatch, values, valueDim] = sizes(value.shape);
  const widths = [
    ['query', query.shape, embedDim, config.embedDim, 'embedDim'],
    ['key', key.shape, keyDim, config.keyDim, 'keyDim'],
    ['value', value.shape, valueDim, config.valueDim, 'valueDim'],
  ] as const;
  for (const [name, shape, got, wanted, field] of widths) {
    if (got !== wanted)
      throw invalidShape(`${name}: a width of ${field} = ${wanted} wanted, got shape [${shape}]`);
  }
  if (keyBatch !== batch || valueBatch !== batch) {
    const [name, shape] = keyBatch !== batch ? ['key', key.shape] : ['value', value.shape];
    throw invalidShape(
      `${name}: batch ${batch} like query's [${query.shape}] wanted, got shape [${shape}]`,
    );
  }
  if (values !== keys) {
    throw invalidShape(
      `value: ${keys} rows like key's [${key.shape}] wanted, got shape [${value.shape}]`,
    );
  }
  const outputShape = rank === 3 ? [batch, queries, config.outputDim] : [queries, config.outputDim];
  if (product(outputShape) > maxSize) throw outOfMemory('forward', product(outputShape) * 4);
  const settings = readAttentionSettings(options, { batch, heads: config.heads, queries, keys });
  return {
    request: {
      ...settings,
      op: 'layerForward',
      layer,
      outputDim: config.outputDim,
      query: query.data,
      key: key.data,
      value: value.data,
      averageWeights: readBoolean('averageWeights', options.averageWeights, false),
    },
    out: readOut(options.out, product(outputShape)),
    signal: readSignal('signal', options.signal),
    outputShape,
  };
}

export function readLinear(
  xValue: TensorLike,
  kernelValue: FloatsLike,
  biasValue: FloatsLike | undefined,
): CheckedCall<LinearRequest> {
  const x = readTensor('x', xValue);
  const kernel = readAnyFloats('kernel', kernelValue);
  if (x.shape.length === 0) throw invalidShape('x: [...,in] wanted, got shape []');
  const width = x.shape[x.shape.length - 1] as number;
  if (kernel.shape.length !== 2 || kernel.shape[0] !== width) {
    throw invalidShape(
      `kernel: [in,out] with in = ${width} like x's [${x.shape}] wanted, got shape [${kernel.shape}]`,
    );
  }
  const out = kernel.shape[1] as number;
  const leading = x.shape.slice(0, -1);
  const rows = product(leading);
  if (rows > maxSize || rows * out > maxSize) throw outOfMemory('linear', rows * out * 4);
  const request: LinearRequest = {
    op: 'linear',
    rows,
    in: width,
    out,
    x: x.data,
    kernel: kernel.data,
  };
  if (biasValue !== undefined) {
    const bias = readAnyFloats('bias', biasValue);
    checkShape('bias', bias.shape, [out], '[out]');
    request.bias = bias.data;
  }
  return { request, out: undefined, signal: undefined, outputShape: [...leading, out] };
}

export function readEmbedding(
  idsValue: IntegersLike,
  tableValue: FloatsLike,
): CheckedCall<EmbeddingRequest> {
  const ids = readAnyIntegers('ids', idsValue);
  const table = readAnyFloats('table', tableValue);
  if (table.shape.length !== 2)
    throw invalidShape(`table: [V,E] wanted, got shape [${table.shape}]`);
  const [vocabulary, width] = table.shape as [number, number];
  ids.data.forEach((id, i) => {
    if (id < 0 || id >= vocabulary) {
      throw invalidValue(`ids[${i}]: an integer from 0 to ${vocabulary - 1} wanted, got ${id}`);
    }
  });
  const rows = ids.data.length;
  if (rows * width > maxSize) throw outOfMemory('embedding', rows * width * 4);
  return {
    request: { op: 'embedding', rows, vocabulary, width, ids: ids.data, table: table.data },
    out: undefined,
    signal: undefined,
    outputShape: [...ids.shape, width],
  };
}

export function readPositionalEncoding(
  length: number,
  dim: number,
): CheckedCall<PositionalEncodingRequest> {
  const rows = readInteger('length', length, 0, maxSize);
  const width = readInteger('dim', dim, 0, maxSize);
  if (rows * width > maxSize) throw outOfMemory('positionalEncoding', rows * width * 4);
  return {
    request: { op: 'positionalEncoding', length: rows, width },
    out: undefined,
    signal: undefined,
    outputShape: [rows, width],
  };
}
