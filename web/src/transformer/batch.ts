// Transformer: what it reads and what it is trained with: checked, and as plain typed arrays.
import type { TensorLike } from '../tensor-like.js';
import type { IntegersLike } from '../tensor-types.js';
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { NoDecay, TransformerBatch } from '../request.js';
import { describe } from '../validation/arrays.js';
import { partOf } from '../validation/fixed.js';
import { readChoice, readFinite, readInteger, readOptions } from '../validation/options.js';
import { checkShape, readAnyIntegers, readTensor } from '../validation/shapes.js';
import type { ResolvedTransformerConfig } from './config.js';
import { maskNames, partOfMasks, readMasks, type TransformerMasks } from './scopes.js';

/** Sequences to a Transformer: arrays of one length, `[B,length]`, and what its attention may see of them. */
export interface TransformerInput extends TransformerMasks {
  /** Source tokens `[B,S]`. */
  source?: IntegersLike | undefined;
  /** With `patchDim`: vectors `[B,S,patchDim]` instead. */
  patches?: TensorLike | undefined;
  /** What the decoder reads `[B,L]`: for training the target behind a start token, without its last token. */
  target?: IntegersLike | undefined;
}

/** What target tokens are generated from. The masks that a target's length decides are those of training's defaults. */
export type GenerateInput = Pick<TransformerInput, 'source' | 'patches' | 'sourceMask'>;

/** A batch to train with. */
export interface TrainingBatch extends TransformerInput {
  /** What each row is to say, `[B,L]`, with kind 'encoder' `[B,S]`: the target one further than `target`. −1: does not count. */
  labels: IntegersLike;
}

const inputNames = ['source', 'patches', 'target', ...Object.values(maskNames).flat()];
const sourceSet = new Set(['source', 'patches', 'sourceMask']);
const inputSet = new Set(inputNames);
const trainingSet = new Set([...inputNames, 'labels']);

export function readInput(config: ResolvedTransformerConfig, value: unknown): TransformerBatch {
  return readBatch(config, readOptions('input', value, inputSet));
}

/** What `generate` and `decoding` take: the source alone. */
export function readSource(config: ResolvedTransformerConfig, value: unknown): TransformerBatch {
  const given = readOptions('input', value ?? {}, sourceSet);
  return readBatch(config, given, false);
}

export function readTrainingBatch(
  config: ResolvedTransformerConfig,
  value: unknown,
): TransformerBatch {
  const given = readOptions('batch', value, trainingSet);
  const batch = readBatch(config, given);
  const labels = readAnyIntegers('labels', given.labels);
  const length = config.kind === 'encoder' ? batch.sourceLength : batch.targetLength;
  checkShape(
    'labels',
    labels.shape,
    [batch.batch, length],
    config.kind === 'encoder' ? '[B,S]' : '[B,L]',
  );
  checkTokens('labels', labels.data, -1, config.targetVocabulary);
  return { ...batch, labels: labels.data };
}

function readBatch(
  config: ResolvedTransformerConfig,
  given: Record<string, unknown>,
  withTarget = config.kind !== 'encoder',
): TransformerBatch {
  const batch: TransformerBatch = { batch: 0, sourceLength: 0, targetLength: 0 };
  const encoder = config.kind !== 'decoder';
  const decoder = config.kind !== 'encoder';
  const unwanted = (encoder ? [] : ['source', 'patches', ...maskNames.encoder])
    .concat(decoder ? [] : ['target', ...maskNames.decoder])
    .concat(encoder && decoder ? [] : maskNames.both)
    .concat(encoder && config.patchDim > 0 ? ['source'] : ['patches'])
    .find((name) => given[name] !== undefined);
  if (unwanted !== undefined)
    throw invalidValue(`${unwanted}: this model of kind '${config.kind}' does not read it`);
  if (encoder && config.patchDim > 0) {
    const { data, shape } = readTensor('patches', given.patches);
    if (shape.length !== 3 || shape[2] !== config.patchDim) {
      throw invalidShape(`patches: shape [B,S,${config.patchDim}] wanted, got [${shape}]`);
    }
    batch.batch = shape[0] as number;
    batch.sourceLength = checkLength('patches', shape[1] as number, config.maxLength);
    batch.sourceVectors = data;
  } else if (encoder) {
    const { data, shape } = readTokens('source', given.source, config.sourceVocabulary);
    batch.batch = shape[0];
    batch.sourceLength = checkLength('source', shape[1], config.maxLength);
    batch.source = data;
  }
  if (withTarget) {
    const { data, shape } = readTokens('target', given.target, config.targetVocabulary);
    if (encoder && shape[0] !== batch.batch) {
      throw invalidShape(
        `target: ${batch.batch} sequences like the source wanted, got ${shape[0]}`,
      );
    }
    batch.batch = shape[0];
    batch.targetLength = checkLength('target', shape[1], config.maxLength);
    batch.target = data;
  }
  readMasks(batch, config.numHeads, given);
  return batch;
}

export function readTokens(
  name: string,
  value: unknown,
  vocabulary: number,
): { data: Int32Array; shape: [number, number] } {
  if (value === undefined) throw invalidType(`${name}: tokens [B,length] wanted, got undefined`);
  const { data, shape } = readAnyIntegers(name, value);
  if (shape.length !== 2) throw invalidShape(`${name}: shape [B,length] wanted, got [${shape}]`);
  checkTokens(name, data, 0, vocabulary);
  return { data, shape: shape as [number, number] };
}

function checkTokens(name: string, data: Int32Array, least: number, vocabulary: number): void {
  const wrong = data.findIndex((token) => token < least || token >= vocabulary);
  if (wrong >= 0) {
    throw invalidValue(
      `${name}: element ${wrong} is ${data[wrong]}; tokens from ${least} to ${vocabulary - 1} wanted`,
    );
  }
}

function checkLength(name: string, length: number, most: number): number {
  if (length < 1 || length > most)
    throw invalidShape(`${name}: a length from 1 to maxLength = ${most} wanted, got ${length}`);
  return length;
}

/** A batch in `parts` of as many sequences as can be, the larger ones first; no more parts than sequences. */
export function partsOf(batch: TransformerBatch, parts: number): TransformerBatch[] {
  const count = Math.max(Math.min(parts, batch.batch), 1);
  let first = 0;
  return Array.from({ length: count }, (_, i) => {
    const end = first + Math.ceil((batch.batch - first) / (count - i));
    const rows = <A extends Int32Array | Float32Array>(name: string, array: A): A => {
      const width = array.length / batch.batch;
      return partOf(name, array, first * width, end * width);
    };
    const part: TransformerBatch = { ...batch, batch: end - first };
    if (batch.source !== undefined) part.source = rows('source', batch.source);
    if (batch.sourceVectors !== undefined)
      part.sourceVectors = rows('patches', batch.sourceVectors);
    if (batch.target !== undefined) part.target = rows('target', batch.target);
    if (batch.labels !== undefined) part.labels = rows('labels', batch.labels);
    partOfMasks(batch, part, first, end);
    first = end;
    return part;
  });
}

/** How a step changes the parameters. */
export interface TrainingOptions {
  /** Default 'adam'. */
  optimizer?: 'sgd' | 'adam' | 'adamw' | undefined;
  /** A number, or a function of the step counted from 1, such as {@link warmupSchedule}. Default 1e-3. */
  learningRate?: number | ((step: number) => number) | undefined;
  /** SGD's. Default 0.9. */
  momentum?: number | undefined;
  /** Adam's. Default 0.9 and 0.999. */
  betas?: readonly [number, number] | undefined;
  /** Adam's. Default 1e-8. */
  epsilon?: number | undefined;
  /** Default 0. */
  weightDecay?: number | undefined;
  /**
   * Which parameters `weightDecay` leaves out, as PyTorch's parameter groups do: 'vectors', those of rank 1 (norms and biases), or
   * those whose names match a regular expression. Default: none.
   */
  noDecay?: 'vectors' | RegExp | undefined;
  /** From 0 to 1: how much of the wanted distribution is spread over all classes. Default 0. */
  labelSmoothing?: number | undefined;
  /** The largest norm of all gradients together; they are scaled down to it. Default: none. */
  maxGradientNorm?: number | undefined;
  /**
   * Takes the batch in so many parts, one after the other, whose gradients are added: the step over the whole batch, each label
   * that counts weighing the same, in so much less memory. Only batch norm sees a part at a time, and dropout drops other
   * elements. No more parts than sequences. Default 1.
   */
  accumulate?: number | undefined;
}

const optionNames = new Set([
  'optimizer',
  'learningRate',
  'momentum',
  'betas',
  'epsilon',
  'weightDecay',
  'noDecay',
  'labelSmoothing',
  'maxGradientNorm',
  'accumulate',
]);
const optimizers = ['sgd', 'adam', 'adamw'];

/** `accumulate`: at most as many parts as the core tells apart. */
export function readAccumulate(value: unknown): number {
  const { accumulate } = readOptions('options', value, optionNames);
  return readInteger('accumulate', accumulate ?? 1, 1, 2 ** 15);
}

/** `noDecay`, with a regular expression of this realm. */
export function readNoDecay(value: unknown): NoDecay | undefined {
  const { noDecay } = readOptions('options', value, optionNames);
  if (noDecay === undefined) return undefined;
  if (Object.prototype.toString.call(noDecay) === '[object RegExp]') {
    const { source, flags } = noDecay as RegExp;
    return new RegExp(source, flags);
  }
  if (typeof noDecay === 'string') return readChoice('noDecay', noDecay, ['vectors'] as const);
  throw invalidType(`noDecay: 'vectors' or a regular expression wanted, got ${describe(noDecay)}`);
}

/** The core's step arguments by their fields' names. */
export function readTrainingOptions(value: unknown, step: number): Record<string, number> {
  const given = readOptions('options', value, optionNames);
  const number = (name: string, byDefault: number, least: number, most: number): number => {
    const got = given[name] === undefined ? byDefault : readFinite(name, given[name]);
    if (got < least || got > most)
      throw invalidValue(`${name}: a number from ${least} to ${most} wanted, got ${got}`);
    return got;
  };
  const optimizer =
    given.optimizer === undefined
      ? 1
      : optimizers.indexOf(readChoice('optimizer', given.optimizer, optimizers));
  const { learningRate } = given;
  const rate: unknown =
    typeof learningRate === 'function'
      ? (learningRate as (step: number) => number)(step)
      : learningRate;
  const betas = (given.betas ?? [0.9, 0.999]) as readonly unknown[];
  if (!Array.isArray(betas) || betas.length !== 2) throw invalidType('betas: two numbers wanted');
  const [beta1, beta2] = betas.map((beta, i) => readFinite(`betas[${i}]`, beta)) as [
    number,
    number,
  ];
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1))
    throw invalidValue(`betas: numbers from 0 to below 1 wanted, got ${beta1} and ${beta2}`);
  return {
    optimizer,
    rate: rate === undefined ? 1e-3 : readFinite('learningRate', rate),
    momentum: number('momentum', 0.9, 0, 0.999999),
    beta1,
    beta2,
    epsilon: number('epsilon', 1e-8, 0, 1),
    weight_decay: number('weightDecay', 0, 0, 1e6),
    smoothing: number('labelSmoothing', 0, 0, 1),
    max_norm: given.maxGradientNorm === undefined ? 0 : number('maxGradientNorm', 0, 1e-30, 3e38),
    step: readInteger('step', step, 1, 2 ** 31 - 1),
  };
}
