// Transformer: the next token from its logits. Pure.
import { invalidShape, invalidValue, notDecidable } from '../errors.js';
import type { IntegersLike } from '../tensor-types.js';
import { readFinite, readInteger, readOptions, readSignal } from '../validation/options.js';
import { readAnyIntegers } from '../validation/shapes.js';

/** How `generate` goes on. Without `temperature`, `topK` and `topP` it takes the likeliest token. */
export interface GenerateOptions {
  /** The first token of every target; or give `prompt`. Default 0. */
  startToken?: number | undefined;
  /** Tokens of the target that are there already, `startToken` among them if there is one. */
  prompt?: IntegersLike | undefined;
  /** Ends a target, and is not part of what is returned. Default: none. */
  endToken?: number | undefined;
  /** At most so many new tokens. Default: up to `maxLength`. */
  maxTokens?: number | undefined;
  /** Divides the logits before drawing; 0 takes the likeliest. Default 1 when drawing. */
  temperature?: number | undefined;
  /** Draws among the k likeliest. */
  topK?: number | undefined;
  /** Draws among the likeliest that together reach this probability. */
  topP?: number | undefined;
  /** Keeps so many targets and returns the one with the largest mean log-probability. Not with drawing. Default 1. */
  beams?: number | undefined;
  /** Seed of the drawing. Default 0. */
  seed?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface ResolvedGenerateOptions {
  prompt: number[];
  endToken: number;
  maxTokens: number;
  /** 0: the likeliest. */
  temperature: number;
  topK: number;
  topP: number;
  beams: number;
  seed: number;
  signal: AbortSignal | undefined;
}

const names = new Set([
  'startToken',
  'prompt',
  'endToken',
  'maxTokens',
  'temperature',
  'topK',
  'topP',
  'beams',
  'seed',
  'signal',
]);

export function readGenerateOptions(
  value: unknown,
  vocabulary: number,
  maxLength: number,
): ResolvedGenerateOptions {
  const given = readOptions('options', value, names);
  if (given.prompt !== undefined && given.startToken !== undefined)
    throw invalidValue('startToken: the prompt has it already; give one of the two');
  const start = readInteger('startToken', given.startToken ?? 0, 0, vocabulary - 1);
  const prompt = given.prompt === undefined ? [start] : readPrompt(given.prompt, vocabulary);
  if (prompt.length === 0 || prompt.length > maxLength)
    throw invalidValue(`prompt: 1 to maxLength = ${maxLength} tokens wanted, got ${prompt.length}`);
  const drawing = given.temperature ?? given.topK ?? given.topP;
  const temperature = drawing === undefined ? 0 : readFinite('temperature', given.temperature ?? 1);
  if (temperature < 0)
    throw invalidValue(`temperature: a number from 0 wanted, got ${temperature}`);
  const topP = readFinite('topP', given.topP ?? 1);
  if (!(topP > 0 && topP <= 1))
    throw invalidValue(`topP: a number above 0, up to 1, wanted, got ${topP}`);
  const beams = readInteger('beams', given.beams ?? 1, 1, 64);
  if (beams > 1 && temperature > 0) throw invalidValue('beams: not together with drawing');
  // One more than fits cannot be fed back.
  const room = maxLength - prompt.length + 1;
  return {
    prompt,
    endToken:
      given.endToken === undefined
        ? -1
        : readInteger('endToken', given.endToken, 0, vocabulary - 1),
    maxTokens: Math.min(readInteger('maxTokens', given.maxTokens ?? room, 0, 2 ** 31 - 1), room),
    temperature,
    topK: readInteger('topK', given.topK ?? vocabulary, 1, 2 ** 31 - 1),
    topP,
    beams,
    seed: readInteger('seed', given.seed ?? 0, 0, 2 ** 32 - 1),
    signal: readSignal('signal', given.signal),
  };
}

/**
 * Throws where no token can be told from the logits of a row: one is NaN or +Infinity, or all are −Infinity. −Infinity rules a
 * token out. `position`: of the token that they are to choose, counted from 0.
 */
export function checkLogits(logits: ArrayLike<number>, position: number): void {
  let possible = false;
  for (let token = 0; token < logits.length; token++) {
    const logit = logits[token] as number;
    if (!(logit < Infinity))
      throw notDecidable(position, `the logit of token ${token} is ${logit}`);
    if (logit > -Infinity) possible = true;
  }
  if (!possible) throw notDecidable(position, 'all logits are −Infinity');
}

function readPrompt(value: unknown, vocabulary: number): number[] {
  const { data, shape } = readAnyIntegers('prompt', value);
  if (shape.length !== 1)
    throw invalidShape(`prompt: a flat array of tokens wanted, got [${shape}]`);
  return Array.from(data, (token, i) => readInteger(`prompt[${i}]`, token, 0, vocabulary - 1));
}

/** log p of every class, in doubles. */
export function logSoftmax(logits: ArrayLike<number>): Float64Array {
  let top = -Infinity;
  for (let i = 0; i < logits.length; i++) top = Math.max(top, logits[i] as number);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp((logits[i] as number) - top);
  const log = Math.log(sum);
  return Float64Array.from(logits, (logit) => logit - top - log);
}

/** `draw` is a number in [0, 1). Of several likeliest tokens the first is taken. */
export function nextToken(
  logits: ArrayLike<number>,
  { temperature, topK, topP }: ResolvedGenerateOptions,
  draw: number,
): number {
  if (temperature === 0) {
    let best = 0;
    for (let token = 1; token < logits.length; token++)
      if ((logits[token] as number) > (logits[best] as number)) best = token;
    return best;
  }
  const order = Array.from(logits, (_, token) => token).sort(
    (a, b) => (logits[b] as number) - (logits[a] as number) || a - b,
  );
  // The likeliest logit is subtracted first: a quotient then overflows to −Infinity at most, so that the smallest temperature
  // takes the likeliest.
  const top = logits[order[0] as number] as number;
  const log = logSoftmax(Array.from(logits, (logit) => (logit - top) / temperature));
  const kept: number[] = [];
  let mass = 0;
  for (const token of order.slice(0, topK)) {
    kept.push(token);
    mass += Math.exp(log[token] as number);
    if (mass >= topP) break;
  }
  let left = draw * mass;
  for (const token of kept) {
    left -= Math.exp(log[token] as number);
    if (left < 0) return token;
  }
  return kept.at(-1) as number;
}

/** Numbers in [0, 1) from a seed (mulberry32): the same everywhere. */
export function drawsOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
