/// <reference lib="esnext.disposable" preserve="true" />
// Public: the Transformer. Its parameters live in the core; this object knows their names, the configuration and the step.
import { aborted, disposed, invalidShape, invalidValue, notFinite } from '../errors.js';
import type { NamedArray, TransformerBatch } from '../request.js';
import { Tensor, type TensorLike } from '../tensor.js';
import { readBoolean, readInteger, readOptions, readSignal } from '../validation/options.js';
import { readTensor } from '../validation/shapes.js';
import type { Host } from '../wasm/host.js';
import {
  partsOf,
  readAccumulate,
  readInput,
  readSource,
  readTrainingBatch,
  readTrainingOptions,
  type GenerateInput,
  type TrainingBatch,
  type TrainingOptions,
  type TransformerInput,
} from './batch.js';
import { checkSavedConfig, fieldsOf, type ResolvedTransformerConfig } from './config.js';
import { TransformerDecoding } from './decoding.js';
import { beamSearch, drawTokens } from './generate.js';
import { readSafetensors, writeSafetensors } from './safetensors.js';
import { readGenerateOptions, type GenerateOptions } from './sample.js';

const disposeSymbol = (Symbol.dispose ?? Symbol.for('Symbol.dispose')) as typeof Symbol.dispose;

/** What a training step tells. */
export interface TrainingProgress {
  /** Counted from 1. */
  step: number;
  /** The mean over the rows that count. */
  loss: number;
  /** The share of those rows whose label is the likeliest class. */
  accuracy: number;
  /** The norm of all gradients together, before clipping. */
  gradientNorm: number;
  learningRate: number;
}

interface StepResult {
  loss: number;
  counted: number;
  correct: number;
  gradientNorm: number;
  /** Where it went wrong, if it did. */
  module: string | undefined;
}

// The core's `result`.
function readStepResult(result: Float32Array): StepResult {
  const [loss, counted, correct, gradientNorm, applied] = result as unknown as [
    number,
    number,
    number,
    number,
    number,
  ];
  const letters = result.subarray(5, result.indexOf(0, 5));
  return {
    loss,
    counted,
    correct,
    gradientNorm,
    module: applied === 0 ? String.fromCharCode(...letters) : undefined,
  };
}

/** The weights of attention of every layer, each `[B,H,L,S]`. */
export interface TransformerWeights {
  encoder: Tensor[];
  decoder: Tensor[];
  /** Of the decoder to the encoder's output. */
  cross: Tensor[];
}

/** A state dict: tensors by their names. */
export type TransformerStateDict<T = TensorLike> = Record<string, T>;

/** A Transformer (Vaswani et al., 2017). Made by `engine.transformer`. */
export class Transformer {
  /** The configuration with its defaults. */
  readonly config: Readonly<ResolvedTransformerConfig>;
  readonly #host: Host;
  readonly #model: number;
  readonly #nextNumber: () => number;
  readonly #checkEngine: () => unknown;
  readonly #created: Promise<unknown>;
  #step = 0;
  #disposed = false;

  /** Use `engine.transformer`. @internal */
  constructor(
    host: Host,
    nextNumber: () => number,
    config: ResolvedTransformerConfig,
    remote: boolean,
    checkEngine: () => unknown,
  ) {
    this.#host = host;
    const model = nextNumber();
    this.#model = model;
    this.#nextNumber = nextNumber;
    this.config = Object.freeze(config);
    this.#checkEngine = checkEngine;
    const request = {
      op: 'createTransformer',
      model,
      fields: fieldsOf(config),
      moments: config.trainable ? 2 : -1,
    } as const;
    if (remote) {
      this.#created = host.run(request);
      this.#created.catch(() => undefined); // told by the first call
    } else {
      this.#created = Promise.resolve(host.runSync(request));
    }
  }

  #alive(): Host {
    if (this.#disposed) throw disposed('the transformer');
    this.#checkEngine();
    return this.#host;
  }

  /** Steps that have been taken. */
  get step(): number {
    return this.#step;
  }

  /**
   * The logits of every row: `[B,L,targetVocabulary]`, with kind 'encoder' `[B,S,targetVocabulary]`.
   *
   * @throws TypeError and RangeError that name the argument: tokens out of range, sequences longer than `maxLength`.
   */
  async forward(input: TransformerInput, options?: { signal?: AbortSignal }): Promise<Tensor> {
    const batch = readInput(this.config, input);
    const { signal } = readOptions('options', options, new Set(['signal']));
    return (await this.#forward(batch, 0, readSignal('signal', signal))).logits;
  }

  /** The weights of attention of every layer and head. */
  async attentionWeights(input: TransformerInput): Promise<TransformerWeights> {
    const batch = readInput(this.config, input);
    const { encoderLayers, decoderLayers, numHeads: heads, kind } = this.config;
    const { batch: count, sourceLength: s, targetLength: l } = batch;
    const shapes: [keyof TransformerWeights, number[]][] = [];
    for (let i = 0; i < encoderLayers; i++) shapes.push(['encoder', [count, heads, s, s]]);
    for (let i = 0; i < decoderLayers; i++) {
      shapes.push(['decoder', [count, heads, l, l]]);
      if (kind === 'encoder-decoder') shapes.push(['cross', [count, heads, l, s]]);
    }
    const sizes = shapes.map(([, shape]) => shape.reduce((a, b) => a * b, 1));
    const all = sizes.reduce((a, b) => a + b, 0);
    const weights = (await this.#forward(batch, all, undefined)).weights ?? new Float32Array(0);
    const result: TransformerWeights = { encoder: [], decoder: [], cross: [] };
    let at = 0;
    shapes.forEach(([part, shape], i) => {
      const size = sizes[i] as number;
      result[part].push(new Tensor(weights.slice(at, at + size), shape));
      at += size;
    });
    return result;
  }

  async #forward(
    batch: TransformerBatch,
    weights: number,
    signal: AbortSignal | undefined,
  ): Promise<{ logits: Tensor; weights: Float32Array | undefined }> {
    const length = this.config.kind === 'encoder' ? batch.sourceLength : batch.targetLength;
    const shape = [batch.batch, length, this.config.targetVocabulary];
    const host = this.#alive();
    await this.#created;
    const logits = shape.reduce((a, b) => a * b, 1);
    const request = {
      op: 'transformerForward',
      model: this.#model,
      logits,
      weights,
      ...batch,
    } as const;
    const response = await host.run(request, signal);
    return {
      logits: new Tensor(response.output as Float32Array, shape),
      weights: response.weights,
    };
  }

  /**
   * One step: forward, backward, clipping, optimizer. When loss or gradients are not finite, nothing is changed, and the
   * promise rejects with a {@link TrainingError} (`INVALID_VALUE`) that has the step and the first module that went wrong;
   * training can go on from there with another batch.
   *
   * @param options the optimizer's; its moments are kept from step to step.
   */
  async trainStep(batch: TrainingBatch, options?: TrainingOptions): Promise<TrainingProgress> {
    return this.#trainStep(batch, options, undefined);
  }

  async #trainStep(
    value: TrainingBatch,
    options: TrainingOptions | undefined,
    signal: AbortSignal | undefined,
  ): Promise<TrainingProgress> {
    if (!this.config.trainable) throw invalidValue('trainable: this model was made without');
    const batch = readTrainingBatch(this.config, value);
    const step = this.#step + 1;
    const settings = readTrainingOptions(options, step);
    const parts = partsOf(batch, readAccumulate(options));
    const host = this.#alive();
    // Taken now, so that steps that are started together count up.
    this.#step = step;
    let results: StepResult[];
    try {
      await this.#created;
      const labels = batch.labels as Int32Array;
      const counted = labels.reduce((sum, label) => sum + Number(label >= 0), 0);
      // All at once, so that nothing comes in between; after one that fails, those behind it do nothing.
      const running = parts.map(async (rows, part) => {
        const fields = { ...settings, part, parts: parts.length, counted };
        const request = {
          op: 'transformerStep',
          model: this.#model,
          settings: fields,
          ...rows,
        } as const;
        return readStepResult((await host.run(request, signal)).output as Float32Array);
      });
      const settled = await Promise.allSettled(running);
      results = settled.map((part, i) => {
        if (part.status === 'rejected') throw part.reason;
        const { loss, gradientNorm, module } = part.value;
        if (module === undefined) return part.value;
        const where = parts.length > 1 ? `step ${step}, part ${i + 1}` : `step ${step}`;
        throw notFinite(
          step,
          module,
          `${where}: ${module} is the first to be not finite; the loss is ${loss}, the gradients' norm ${gradientNorm}; nothing was changed`,
        );
      });
    } catch (error) {
      if (this.#step === step) this.#step = step - 1;
      throw error;
    }
    const sum = (of: (result: StepResult) => number): number =>
      results.reduce((total, result) => total + of(result), 0);
    const counted = sum((result) => result.counted);
    return {
      step,
      loss: sum(({ loss }) => loss),
      accuracy: counted > 0 ? sum(({ correct }) => correct) / counted : 0,
      gradientNorm: (results.at(-1) as StepResult).gradientNorm,
      learningRate: settings.rate as number,
    };
  }

  /**
   * Trains on batch after batch and yields each step's progress. It pauses where the loop that reads it pauses, and ends with
   * the batches, with `break`, or by rejecting with an `AbortError`; a later call goes on where this one ended.
   */
  async *train(
    batches: Iterable<TrainingBatch> | AsyncIterable<TrainingBatch>,
    options: TrainingOptions & { signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<TrainingProgress, void, undefined> {
    const { signal: given, ...rest } = options;
    const signal = readSignal('signal', given);
    for await (const batch of batches) {
      if (signal?.aborted === true) throw aborted('train', signal.reason);
      yield await this.#trainStep(batch, rest, signal);
    }
  }

  /**
   * A target to be read a few tokens at a time, with the logits behind each part: what {@link Transformer.generate} is made of,
   * for ways of its own to go on. The keys and values that are kept are those of the weights at the time.
   *
   * @param input the one source; nothing with kind 'decoder'.
   * @param options `rows`: targets that are read side by side, default 1; `capacity`: the most tokens of each, default
   * `maxLength`.
   */
  decoding(
    input?: GenerateInput,
    options?: { rows?: number | undefined; capacity?: number | undefined },
  ): TransformerDecoding {
    const { kind, maxLength } = this.config;
    if (kind === 'encoder') throw invalidValue("decoding: a model of kind 'encoder' has no target");
    const source = this.#readOneSource(input);
    const given = readOptions('options', options, new Set(['rows', 'capacity']));
    return this.#decoding(
      source,
      readInteger('rows', given.rows ?? 1, 1, 2 ** 16),
      readInteger('capacity', given.capacity ?? maxLength, 1, maxLength),
    );
  }

  #readOneSource(input: GenerateInput | undefined): TransformerBatch {
    const source = readSource(this.config, input);
    if (this.config.kind !== 'decoder' && source.batch !== 1)
      throw invalidShape(`source: one sequence wanted, got ${source.batch}`);
    return source;
  }

  #decoding(source: TransformerBatch, rows: number, capacity: number): TransformerDecoding {
    const owner = {
      alive: () => this.#alive(),
      model: this.#model,
      decoding: this.#nextNumber(),
      vocabulary: this.config.targetVocabulary,
    };
    return new TransformerDecoding(owner, source, rows, capacity);
  }

  /**
   * Target tokens, one after the other, for one source: what comes after `prompt` (or `startToken`), without the end token. The
   * keys and values of what has been read are kept, so that a token costs the same wherever it stands.
   */
  async generate(input: GenerateInput, options?: GenerateOptions): Promise<number[]> {
    const tokens: number[] = [];
    for await (const token of this.generateStream(input, options)) tokens.push(token);
    return tokens;
  }

  /** {@link Transformer.generate}, each token as it is made; with `beams` all of them at the end. */
  async *generateStream(
    input: GenerateInput,
    options?: GenerateOptions,
  ): AsyncGenerator<number, void, undefined> {
    const { kind, targetVocabulary, maxLength } = this.config;
    if (kind === 'encoder') throw invalidValue("generate: a model of kind 'encoder' has no target");
    const settings = readGenerateOptions(options, targetVocabulary, maxLength);
    const source = this.#readOneSource(input);
    // The last token that is made is not read.
    const capacity = settings.prompt.length + Math.max(settings.maxTokens - 1, 0);
    const decoding = this.#decoding(source, 1, capacity);
    try {
      yield* settings.beams > 1
        ? await beamSearch(decoding, settings)
        : drawTokens(decoding, settings);
    } finally {
      decoding.dispose();
    }
  }

  /** All parameters by name, as copies; the names and shapes of `torch.nn.Transformer`'s state dict where it has them. */
  async getWeights(): Promise<TransformerStateDict<Tensor>> {
    const tensors = await this.#tensors(false);
    return Object.fromEntries(
      tensors.map(({ name, shape, data }) => [name, new Tensor(data, shape)]),
    );
  }

  /** Sets those parameters that are given, all or none. */
  async setWeights(weights: TransformerStateDict): Promise<void> {
    await this.#set(weights, await this.#tensors(false));
  }

  async #set(weights: TransformerStateDict, own: readonly NamedArray[]): Promise<void> {
    const shapes = new Map(own.map(({ name, shape }) => [name, shape]));
    const tensors = Object.entries(weights).map(([name, value]): NamedArray => {
      const { data, shape } = readTensor(name, value);
      const wanted = shapes.get(name);
      if (wanted === undefined)
        throw invalidValue(`${name}: this model has no parameter of that name`);
      if (wanted.length !== shape.length || wanted.some((size, axis) => size !== shape[axis]))
        throw invalidShape(`${name}: shape [${wanted}] wanted, got [${shape}]`);
      return { name, shape, data };
    });
    await this.#alive().run({ op: 'setTensors', model: this.#model, tensors });
  }

  /**
   * Sets encoder and decoder from the state dict of `torch.nn.Transformer`, or, with `prefix` 'encoder' or 'decoder', of a
   * `torch.nn.TransformerEncoder` or `TransformerDecoder`. Embeddings and output projection are not part of those.
   */
  async loadTorch(stateDict: TransformerStateDict, prefix?: 'encoder' | 'decoder'): Promise<void> {
    const names = new Set((await this.#tensors(false)).map(({ name }) => name));
    const weights = Object.fromEntries(
      Object.entries(stateDict).map(([name, value]) => [
        prefix === undefined ? name : `${prefix}.${name}`,
        value,
      ]),
    );
    const stacks = prefix === undefined ? ['encoder.', 'decoder.'] : [`${prefix}.`];
    for (const name of names) {
      if (stacks.some((stack) => name.startsWith(stack)) && weights[name] === undefined)
        throw invalidValue(`stateDict: ${name} is missing`);
    }
    await this.setWeights(weights);
  }

  /**
   * A safetensors file of all parameters, with the configuration in its metadata. With `optimizer` its moments are there too
   * (three times the size), and training goes on from the file as if it had never stopped.
   */
  async save(options?: { optimizer?: boolean }): Promise<Uint8Array> {
    const { optimizer } = readOptions('options', options, new Set(['optimizer']));
    const moments = readBoolean('optimizer', optimizer, false);
    const tensors = await this.#tensors(moments);
    const step = String(moments ? this.#step : 0);
    return writeSafetensors(tensors, { format: 'pt', headwise: JSON.stringify(this.config), step });
  }

  /**
   * Sets all parameters from what {@link Transformer.save} made of a model of the same configuration. Without the optimizer's moments
   * in the file, these begin anew, and so does the count of steps.
   */
  async load(file: Uint8Array | ArrayBuffer): Promise<void> {
    const { tensors, metadata } = readSafetensors(file);
    checkSavedConfig(this.config, metadata.headwise);
    const given = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    const own = await this.#tensors(true);
    const isMoment = (name: string): boolean => /^(first|second)\./.test(name);
    const resumes = this.config.trainable && tensors.some(({ name }) => isMoment(name));
    const wanted = own.map(({ name, shape, data }): [string, Tensor | NamedArray] => {
      if (isMoment(name) && !resumes)
        return [name, new Tensor(new Float32Array(data.length), shape)];
      const tensor = given.get(name);
      if (tensor === undefined) throw invalidValue(`checkpoint: ${name} is missing`);
      return [name, tensor];
    });
    const known = new Set(own.map(({ name }) => name));
    const strange = tensors.find(({ name }) => !known.has(name) && !isMoment(name));
    if (strange !== undefined) throw invalidValue(`checkpoint: this model has no ${strange.name}`);
    await this.#set(Object.fromEntries(wanted), own);
    const step = Number(metadata.step);
    this.#step = resumes && Number.isInteger(step) && step > 0 ? step : 0;
  }

  /** Frees the parameters; the object is of no use afterwards. May be called again. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    // An engine that is gone has freed them already.
    this.#host.run({ op: 'destroyTransformer', model: this.#model }).catch(() => undefined);
  }

  /** {@link Transformer.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  async #tensors(moments: boolean): Promise<NamedArray[]> {
    const host = this.#alive();
    await this.#created;
    const response = await host.run({ op: 'getTensors', model: this.#model, moments });
    return response.tensors as NamedArray[];
  }
}

/**
 * The learning rate of "Attention is all you need", section 5.3: `factor · embedDim^−½ · min(step^−½, step · warmup^−1½)`, for
 * {@link TrainingOptions}. `warmup` 0 has none.
 */
export function warmupSchedule(
  embedDim: number,
  warmup: number,
  factor = 1,
): (step: number) => number {
  return (step) => {
    const t = Math.max(step, 1);
    const rising = warmup > 0 ? t * warmup ** -1.5 : Infinity;
    return factor * embedDim ** -0.5 * Math.min(t ** -0.5, rising);
  };
}
