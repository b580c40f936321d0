// Transformer: the configuration, its defaults, and the core's struct that it becomes.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { RotarySettings, TransformerFields } from '../request.js';
import {
  readBoolean,
  readChoice,
  readFinite,
  readInteger,
  readOptions,
  readSeed,
} from '../validation/options.js';
import { readRope, type RopeOptions } from '../validation/rotary.js';

/** The configuration of `engine.transformer`. */
export interface TransformerConfig {
  /** What is made of what: target tokens of source tokens, of their own past, or a class for each source position. */
  kind: 'encoder-decoder' | 'decoder' | 'encoder';
  /** E: the width of the model. */
  embedDim: number;
  /** H, which divides E. */
  numHeads: number;
  /** G: the number of key/value heads, which divides H. Default H. With fewer, `in_proj_weight` has `E + 2·G·E/H` rows. */
  numKvHeads?: number | undefined;
  /** Width of the feed-forward's inner layer. Default 4·E. */
  feedForwardDim?: number | undefined;
  /**
   * Layers of the encoder. Default 6; none with 'decoder'. With 'encoder-decoder' 0 is allowed: the decoder's layers then attend
   * to the embedded source itself.
   */
  encoderLayers?: number | undefined;
  /** Layers of the decoder. Default 6; none with 'encoder'. */
  decoderLayers?: number | undefined;
  /** Number of source tokens. Needed with an encoder, unless `patchDim` is given. */
  sourceVocabulary?: number | undefined;
  /** The source is vectors of this width, such as patches of a picture, projected to E; instead of tokens. */
  patchDim?: number | undefined;
  /** Number of target tokens; with 'encoder' the number of classes. */
  targetVocabulary: number;
  /** The longest sequence. Default 512, or as many as rows of `rope`'s tables where they are fewer. */
  maxLength?: number | undefined;
  /** Default 'layer'. */
  norm?: 'layer' | 'rms' | 'batch' | undefined;
  /** Norms before each branch, instead of after each sum. Default false. */
  normFirst?: boolean | undefined;
  /** A norm after each stack, as `torch.nn.Transformer` always has. Default `normFirst`. */
  finalNorm?: boolean | undefined;
  /** Default 'relu'. */
  activation?: 'relu' | 'gelu' | 'gelu-tanh' | undefined;
  /** With 'rotary' the queries and keys of self-attention are turned; cross-attention has no positions. Default 'sinusoidal'. */
  positions?: 'sinusoidal' | 'learned' | 'none' | 'rotary' | undefined;
  /** With positions 'rotary': base (10000), how many elements of a head turn (all), pairs, scaling, or tables of at least `maxLength` rows; as the layer's. */
  rope?: RopeOptions | undefined;
  /** The target's embedding is the output projection too. Default false. */
  tied?: boolean | undefined;
  /** Token embeddings times √E. Default true. */
  scaleEmbedding?: boolean | undefined;
  /** Of the norms. Default 1e-5. */
  epsilon?: number | undefined;
  /** Training only, from 0 to below 1: on embeddings, attention's weights, the inner layer and each branch. Default 0. */
  dropout?: number | undefined;
  /** Seed of start values and dropout. Default 0. */
  seed?: number | undefined;
  /** Whether it can be trained; without, it needs a quarter of the memory. Default true. */
  trainable?: boolean | undefined;
}

/** A configuration with no defaults left; `rope` as it was given, and only with positions 'rotary'. */
export type ResolvedTransformerConfig = {
  [K in keyof Omit<TransformerConfig, 'rope'>]-?: NonNullable<TransformerConfig[K]>;
} & { rope?: RopeOptions };

const names = new Set([
  'kind',
  'embedDim',
  'numHeads',
  'numKvHeads',
  'feedForwardDim',
  'encoderLayers',
  'decoderLayers',
  'sourceVocabulary',
  'patchDim',
  'targetVocabulary',
  'maxLength',
  'norm',
  'normFirst',
  'finalNorm',
  'activation',
  'positions',
  'rope',
  'tied',
  'scaleEmbedding',
  'epsilon',
  'dropout',
  'seed',
  'trainable',
]);
const kinds = ['encoder-decoder', 'decoder', 'encoder'] as const;
const norms = ['layer', 'rms', 'batch'] as const;
const activations = ['relu', 'gelu', 'gelu-tanh'] as const;
const positionKinds = ['sinusoidal', 'learned', 'none', 'rotary'] as const;

const mostSize = 2 ** 24;
const mostLayers = 999;

export function readTransformerConfig(value: unknown): ResolvedTransformerConfig {
  if (value === undefined)
    throw invalidType('config: an object with kind, embedDim, numHeads wanted, got undefined');
  const given = readOptions('config', value, names);
  const size = (name: string, byDefault?: number, least = 1, most = mostSize): number =>
    readInteger(name, given[name] === undefined ? byDefault : given[name], least, most);
  const choice = <T extends string>(name: string, choices: readonly [T, ...T[]]): T =>
    given[name] === undefined ? choices[0] : readChoice(name, given[name], choices);
  const kind = readChoice('kind', given.kind, kinds);
  const encoder = kind !== 'decoder';
  const decoder = kind !== 'encoder';
  const unwanted = [
    ...(encoder ? [] : ['encoderLayers', 'sourceVocabulary', 'patchDim']),
    ...(decoder ? [] : ['decoderLayers', 'tied']),
  ].find((name) => given[name] !== undefined);
  if (unwanted !== undefined) throw invalidValue(`${unwanted}: not an option of kind '${kind}'`);
  const embedDim = size('embedDim');
  const numHeads = size('numHeads');
  if (embedDim % numHeads !== 0) {
    throw invalidShape(`numHeads: a divisor of embedDim = ${embedDim} wanted, got ${numHeads}`);
  }
  const numKvHeads = size('numKvHeads', numHeads);
  if (numHeads % numKvHeads !== 0) {
    throw invalidShape(`numKvHeads: a divisor of numHeads = ${numHeads} wanted, got ${numKvHeads}`);
  }
  const positions = choice('positions', positionKinds);
  if (given.rope !== undefined && positions !== 'rotary')
    throw invalidValue(`rope: only with positions 'rotary', got '${positions}'`);
  const rope =
    positions === 'rotary' ? readRope('rope', given.rope, embedDim / numHeads) : undefined;
  const maxLength = size('maxLength', Math.min(512, rope?.tables?.rows ?? 512));
  if (rope?.tables !== undefined && rope.tables.rows < maxLength) {
    throw invalidShape(
      `rope.cos: at least maxLength = ${maxLength} rows wanted, got ${rope.tables.rows}`,
    );
  }
  const patchDim = given.patchDim === undefined ? 0 : size('patchDim');
  if (patchDim > 0 && given.sourceVocabulary !== undefined)
    throw invalidValue('patchDim: the source is either patches or tokens, both are given');
  const dropout = given.dropout === undefined ? 0 : readFinite('dropout', given.dropout);
  if (dropout < 0 || dropout >= 1)
    throw invalidValue(`dropout: a number from 0 to below 1 wanted, got ${dropout}`);
  const epsilon = given.epsilon === undefined ? 1e-5 : readFinite('epsilon', given.epsilon);
  if (epsilon < 0) throw invalidValue(`epsilon: a number from 0 wanted, got ${epsilon}`);
  readSeed('seed', given.seed);
  const normFirst = readBoolean('normFirst', given.normFirst, false);
  return {
    kind,
    embedDim,
    numHeads,
    numKvHeads,
    feedForwardDim: size('feedForwardDim', 4 * embedDim),
    encoderLayers: encoder ? size('encoderLayers', 6, decoder ? 0 : 1, mostLayers) : 0,
    decoderLayers: decoder ? size('decoderLayers', 6, 1, mostLayers) : 0,
    sourceVocabulary: encoder && patchDim === 0 ? size('sourceVocabulary') : 0,
    patchDim,
    targetVocabulary: size('targetVocabulary'),
    maxLength,
    norm: choice('norm', norms),
    normFirst,
    finalNorm: readBoolean('finalNorm', given.finalNorm, normFirst),
    activation: choice('activation', activations),
    positions,
    ...(rope !== undefined && given.rope !== undefined
      ? { rope: plainRope(given.rope as RopeOptions, rope) }
      : {}),
    tied: readBoolean('tied', given.tied, false),
    scaleEmbedding: readBoolean('scaleEmbedding', given.scaleEmbedding, true),
    epsilon,
    dropout,
    seed: given.seed === undefined ? 0 : (given.seed as number),
    trainable: readBoolean('trainable', given.trainable, true),
  };
}

// What a model with parameters of the same shapes still computes otherwise by.
const deciding = [
  'kind',
  'numHeads',
  'numKvHeads',
  'norm',
  'normFirst',
  'finalNorm',
  'activation',
  'positions',
  'tied',
  'scaleEmbedding',
  'epsilon',
] as const;

/** Throws when a checkpoint's configuration, JSON in its metadata, is another model's. A file of another program has none. */
export function checkSavedConfig(
  config: ResolvedTransformerConfig,
  json: string | undefined,
): void {
  if (json === undefined) return;
  let saved: Partial<ResolvedTransformerConfig> | null;
  try {
    saved = JSON.parse(json) as typeof saved;
  } catch {
    throw invalidValue('checkpoint: the configuration in its metadata cannot be read');
  }
  const differ = (name: string, there: unknown, here: unknown): void => {
    // What an older file does not say is as it was then: the default.
    if (there === undefined || there === here) return;
    throw invalidValue(
      `checkpoint: ${name} is ${JSON.stringify(there)} there and ${JSON.stringify(here)} in this model`,
    );
  };
  for (const name of deciding) differ(name, saved?.[name], config[name]);
  if (config.positions !== 'rotary' || saved?.positions !== 'rotary') return;
  const size = config.embedDim / config.numHeads;
  const [there, here] = [saved.rope, config.rope].map((rope) =>
    partsOf(readRope('rope', rope, size)),
  ) as [RopeParts, RopeParts];
  for (const [name, value] of Object.entries(there.numbers))
    differ(`rope.${name}`, value, here.numbers[name]);
  for (const [name, array] of Object.entries(there.arrays)) {
    if (JSON.stringify(Array.from(array)) !== JSON.stringify(Array.from(here.arrays[name] ?? [])))
      throw invalidValue(`checkpoint: rope.${name} has other numbers there than in this model`);
  }
}

interface RopeParts {
  numbers: Record<string, number | boolean>;
  arrays: Record<string, Float32Array>;
}

// What decides how rope turns.
function partsOf({ dim, base, interleaved, scaling, tables }: RotarySettings): RopeParts {
  const none = new Float32Array();
  return {
    numbers: {
      dim,
      base,
      interleaved,
      'scaling.rule': scaling?.rule ?? 0,
      'scaling.factor': scaling?.factor ?? 1,
      'scaling.original_length': scaling?.originalLength ?? 0,
      'scaling.low': scaling?.low ?? 1,
      'scaling.high': scaling?.high ?? 4,
      'scaling.magnitude': scaling?.magnitude ?? 1,
    },
    arrays: {
      cos: tables?.cos ?? none,
      sin: tables?.sin ?? none,
      'scaling.shortFactor': scaling?.shortFactors ?? none,
      'scaling.longFactor': scaling?.longFactors ?? none,
    },
  };
}

// As it was given, but that its arrays are plain ones: checkpoints hold it as JSON.
function plainRope(given: RopeOptions, { tables, scaling }: RotarySettings): RopeOptions {
  const plain = { ...given };
  if (given.scaling !== undefined) plain.scaling = { ...given.scaling };
  if (tables !== undefined) {
    const width = tables.cos.length / Math.max(tables.rows, 1);
    const nested = (table: Float32Array): number[][] =>
      Array.from({ length: tables.rows }, (_, p) =>
        Array.from(table.subarray(p * width, (p + 1) * width)),
      );
    plain.cos = nested(tables.cos);
    plain.sin = nested(tables.sin);
  }
  if (plain.scaling?.type === 'longrope') {
    plain.scaling.shortFactor = Array.from(scaling?.shortFactors ?? []);
    plain.scaling.longFactor = Array.from(scaling?.longFactors ?? []);
  }
  return plain;
}

/** Its rotary positions, if it has such. */
export function ropeOf(config: ResolvedTransformerConfig): RotarySettings | undefined {
  if (config.positions !== 'rotary') return undefined;
  return readRope('rope', config.rope, config.embedDim / config.numHeads);
}

/** The core's struct, field by field. */
export function fieldsOf(config: ResolvedTransformerConfig): TransformerFields {
  const [low, high] = readSeed('seed', config.seed);
  return {
    kind: kinds.indexOf(config.kind),
    embed_dim: config.embedDim,
    heads: config.numHeads,
    kv_heads: config.numKvHeads,
    feed_forward: config.feedForwardDim,
    encoder_layers: config.encoderLayers,
    decoder_layers: config.decoderLayers,
    source_vocabulary: config.sourceVocabulary,
    source_width: config.patchDim,
    target_vocabulary: config.targetVocabulary,
    most_positions: config.maxLength,
    norm: norms.indexOf(config.norm),
    norm_first: Number(config.normFirst),
    final_norm: Number(config.finalNorm),
    activation: activations.indexOf(config.activation),
    position: positionKinds.indexOf(config.positions),
    tied: Number(config.tied),
    scale_embedding: Number(config.scaleEmbedding),
    epsilon: config.epsilon,
    dropout: config.dropout,
    seed_low: low,
    seed_high: high,
  };
}
