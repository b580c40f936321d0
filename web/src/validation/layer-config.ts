// Validation: a layer's configuration, its defaults, and the shapes of its parameters.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { LayerConfig } from '../request.js';
import { describe } from './arrays.js';
import { readBoolean, readChoice, readInteger, readOptions, readSeed } from './options.js';
import { readRope, type RopeOptions } from './rotary.js';

/** The configuration of `engine.multiHeadAttention`. */
export interface MultiHeadAttentionConfig {
  /** E: the width of the query. */
  embedDim: number;
  /** H: the number of query heads. */
  numHeads: number;
  /** G: the number of key/value heads, which divides H. Default H. */
  numKvHeads?: number | undefined;
  /** D: the size of a query and key head. Default `embedDim / numHeads`, which must then be whole. */
  headDim?: number | undefined;
  /** Dv: the size of a value head. Default `headDim`. */
  valueHeadDim?: number | undefined;
  /** The width of the key. Default `embedDim`. */
  keyDim?: number | undefined;
  /** The width of the value. Default `keyDim`. */
  valueDim?: number | undefined;
  /** The width of the output. Default `embedDim`. */
  outputDim?: number | undefined;
  /** Whether the projections have biases. Default true. */
  bias?: boolean | undefined;
  /** How the heads' outputs are combined before the output projection: side by side, or added. Default 'concat'. */
  merge?: 'concat' | 'sum' | undefined;
  /** How q, k and v are made: a matrix, or a convolution along the sequence. Default 'dense'. */
  projection?:
    'dense' | { type: 'conv'; kernelSize: number; causal?: boolean | undefined } | undefined;
  /** The score of query and key: q·k/√D, q·k, the cosine, or Bahdanau's additive one. Default 'scaled-dot'. */
  score?: 'scaled-dot' | 'dot' | 'cosine' | 'additive' | undefined;
  /** Rotary positions: base (10000), how many elements turn (`headDim`), pairs side by side or in halves (false), scaling; or tables. */
  rope?: RopeOptions | undefined;
  /** Seed of the Glorot-uniform start values. Default 0. */
  seed?: number | undefined;
}

const configNames = new Set([
  'embedDim',
  'numHeads',
  'numKvHeads',
  'headDim',
  'valueHeadDim',
  'keyDim',
  'valueDim',
  'outputDim',
  'bias',
  'merge',
  'projection',
  'score',
  'rope',
  'seed',
]);
const convolutionNames = new Set(['type', 'kernelSize', 'causal']);
const merges = ['concat', 'sum'] as const;
const scores = ['scaled-dot', 'dot', 'cosine', 'additive'] as const;

// Keeps every product of two sizes within the integers that doubles hold exactly.
const mostSize = 2 ** 24;

export function readLayerConfig(value: MultiHeadAttentionConfig): LayerConfig {
  if (value === undefined)
    throw invalidType('config: an object with embedDim and numHeads wanted, got undefined');
  const config = readOptions('config', value, configNames);
  const size = (name: string, byDefault?: number): number => {
    const given = config[name] === undefined ? byDefault : config[name];
    return readInteger(name, given, 1, mostSize);
  };
  const embedDim = size('embedDim');
  const heads = size('numHeads');
  const kvHeads = size('numKvHeads', heads);
  if (heads % kvHeads !== 0) {
    throw invalidShape(`numKvHeads: a divisor of numHeads = ${heads} wanted, got ${kvHeads}`);
  }
  if (config.headDim === undefined && embedDim % heads !== 0) {
    throw invalidShape(
      `headDim: needed, because numHeads = ${heads} does not divide embedDim = ${embedDim}`,
    );
  }
  const headDim = size('headDim', embedDim / heads);
  const keyDim = size('keyDim', embedDim);
  const resolved: LayerConfig = {
    embedDim,
    heads,
    kvHeads,
    headDim,
    valueHeadDim: size('valueHeadDim', headDim),
    keyDim,
    valueDim: size('valueDim', keyDim),
    outputDim: size('outputDim', embedDim),
    bias: readBoolean('bias', config.bias, true),
    merge: config.merge === undefined ? 'concat' : readChoice('merge', config.merge, merges),
    score: config.score === undefined ? 'scaled-dot' : readChoice('score', config.score, scores),
    seed: readSeed('seed', config.seed),
  };
  const convolution = readProjection(config.projection);
  if (convolution !== undefined) resolved.convolution = convolution;
  if (config.rope !== undefined) {
    const { dim, cos } = (config.rope ?? {}) as { dim?: unknown; cos?: unknown };
    if (dim === undefined && cos === undefined && headDim % 2 !== 0)
      throw invalidValue(`rope.dim: an even number wanted, got ${headDim}`);
    resolved.rope = readRope('rope', config.rope, headDim);
  }
  return resolved;
}

function readProjection(value: unknown): LayerConfig['convolution'] {
  if (value === undefined || value === 'dense') return undefined;
  if (typeof value === 'string') {
    throw invalidValue(
      `projection: 'dense' or { type: 'conv', kernelSize } wanted, got ${describe(value)}`,
    );
  }
  const options = readOptions('projection', value, convolutionNames);
  readChoice('projection.type', options.type, ['conv'] as const);
  return {
    kernelSize: readInteger('projection.kernelSize', options.kernelSize, 1, mostSize),
    causal: readBoolean('projection.causal', options.causal, false),
  };
}
