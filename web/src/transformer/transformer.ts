/// <reference lib="esnext.disposable" preserve="true" />
// Public: the Transformer. Its parameters live in the core; this object knows their names, the configuration and the step.
import { aborted, invalidShape, invalidType, invalidValue, notFinite } from '../errors.js';
import { Handle, type HandleOwner } from '../handle.js';
import type { CompleteTensors, NamedArray, TransformerBatch } from '../request.js';
import { snapshot } from '../snapshot.js';
import { Tensor } from '../tensor.js';
import { describe } from '../validation/arrays.js';
import {
  readBoolean,
  readInteger,
  readObject,
  readOptions,
  readSignal,
} from '../validation/options.js';
import {
  partsOf,
  readAccumulate,
  readInput,
  readNoDecay,
  readSource,
  readTrainingBatch,
  readTrainingOptions,
  type GenerateInput,
  type TrainingBatch,
  type TrainingOptions,
  type TransformerInput,
} from './batch.js';
import { checkSavedConfig, fieldsOf, ropeOf, type ResolvedTransformerConfig } from './config.js';
import { TransformerDecoding } from './decoding.js';
import { beamSearch, drawTokens } from './generate.js';
import { readSafetensors, writeSafetensors } from './safetensors.js';
import {
  readGenerateOptions,
  type GenerateOptions,
  type ResolvedGenerateOptions,
} from './sample.js';
import { readStepResult, type StepResult } from './step-result.js';
import {
  readStateDict,
  readTorchStacks,
  type LoadTorchStackOptions,
  type TorchStack,
  type TransformerStateDict,
} from './torch.js';

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

/** The weights of attention of every layer, each `[B,H,L,S]`. */
export interface TransformerWeights {
  encoder: Tensor[];
  decoder: Tensor[];
  /** Of the decoder to the encoder's output. */
  cross: Tensor[];
}

/** A Transformer (Vaswani et al., 2017). Made by `engine.transformer`. */
export class Transformer {
  /** The configuration with its defaults. */
  readonly config: Readonly<ResolvedTransformerConfig>;
  readonly #handle: Handle;
  #step = 0;

  /** Use `engine.transformer`. @internal */
  constructor(owner: HandleOwner, config: ResolvedTransformerConfig) {
    this.config = Object.freeze(config);
    const rope = ropeOf(config);
    this.#handle = new Handle(owner, 'transformer', (model) => ({
      op: 'createTransformer',
      model,
      fields: fieldsOf(config),
      ...(rope === undefined ? {} : { rope }),
      moments: config.trainable ? 2 : -1,
    }));
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
    this.#handle.check();
    const batch = readInput(this.config, input);
    const { signal } = readOptions('options', options, new Set(['signal']));
    return (await this.#forward(batch, 0, readSignal('signal', signal))).logits;
  }

  /** The weights of attention of every layer and head. */
  async attentionWeights(input: TransformerInput): Promise<TransformerWeights> {
    this.#handle.check();
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
    const logits = shape.reduce((a, b) => a * b, 1);
    const request = {
      op: 'transformerForward',
      model: this.#handle.number,
      logits,
      weights,
      ...batch,
    } as const;
    const response = await this.#handle.run(request, signal);
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
    this.#handle.check();
    if (!this.config.trainable) throw invalidValue('trainable: this model was made without');
    const batch = readTrainingBatch(this.config, value);
    const step = this.#step + 1;
    const settings = readTrainingOptions(options, step);
    const parts = partsOf(batch, readAccumulate(options));
    const noDecay = readNoDecay(options);
    // Taken now, so that steps that are started together count up.
    this.#step = step;
    let results: StepResult[];
    try {
      const labels = batch.labels as Int32Array;
      const counted = labels.reduce((sum, label) => sum + Number(label >= 0), 0);
      // All at once, so that nothing comes in between; after one that fails, those behind it do nothing.
      const running = parts.map(async (rows, part) => {
        const fields = { ...settings, part, parts: parts.length, counted };
        const request = {
          op: 'transformerStep',
          model: this.#handle.number,
          settings: fields,
          ...(noDecay !== undefined && { noDecay }),
          ...rows,
        } as const;
        const { output } = await this.#handle.run(request, signal);
        return readStepResult(output as Float32Array);
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
  train(
    batches: Iterable<TrainingBatch> | AsyncIterable<TrainingBatch>,
    options?: TrainingOptions & { signal?: AbortSignal | undefined },
  ): AsyncGenerator<TrainingProgress, void, undefined> {
    return this.#train(
      batches,
      attempt(() => readTrain(batches, options)),
    );
  }

  async *#train(
    batches: Iterable<TrainingBatch> | AsyncIterable<TrainingBatch>,
    settings: () => { options: TrainingOptions; signal: AbortSignal | undefined },
  ): AsyncGenerator<TrainingProgress, void, undefined> {
    const { options, signal } = settings();
    for await (const batch of batches) {
      if (signal?.aborted === true) throw aborted('train', signal.reason);
      yield await this.#trainStep(batch, options, signal);
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
    this.#handle.check();
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
    const of = { model: this.#handle.number, vocabulary: this.config.targetVocabulary };
    return new TransformerDecoding(this.#handle.owner(), of, source, rows, capacity);
  }

  /**
   * Target tokens, one after the other, for one source: what comes after `prompt` (or `startToken`), without the end token. The
   * keys and values of what has been read are kept, so that a token costs the same wherever it stands.
   *
   * @throws GenerationError (`INVALID_VALUE`, with the new token's `position`) where a logit is NaN or +Infinity, or all are
   * −Infinity. Some of −Infinity rule their tokens out.
   */
  async generate(input: GenerateInput, options?: GenerateOptions): Promise<number[]> {
    const tokens: number[] = [];
    for await (const token of this.generateStream(input, options)) tokens.push(token);
    return tokens;
  }

  /** {@link Transformer.generate}, each token as it is made; with `beams` all of them at the end. */
  generateStream(
    input: GenerateInput,
    options?: GenerateOptions,
  ): AsyncGenerator<number, void, undefined> {
    return this.#generate(
      attempt(() => {
        this.#handle.check();
        const { kind, targetVocabulary, maxLength } = this.config;
        if (kind === 'encoder')
          throw invalidValue("generate: a model of kind 'encoder' has no target");
        const settings = readGenerateOptions(options, targetVocabulary, maxLength);
        return { settings, source: snapshot(this.#readOneSource(input)) };
      }),
    );
  }

  async *#generate(
    start: () => { settings: ResolvedGenerateOptions; source: TransformerBatch },
  ): AsyncGenerator<number, void, undefined> {
    const { settings, source } = start();
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
    await this.#set(readStateDict('weights', weights));
  }

  async #set(tensors: NamedArray[], complete?: CompleteTensors): Promise<void> {
    const request = { op: 'setTensors', model: this.#handle.number, tensors } as const;
    await this.#handle.run(complete === undefined ? request : { ...request, complete });
  }

  /**
   * Sets encoder and decoder from the state dict of `torch.nn.Transformer`, or, with `stack` 'encoder' or 'decoder', of a
   * `torch.nn.TransformerEncoder` or `TransformerDecoder`. Embeddings and output projection are not part of those. A stack whose
   * layers have no biases there (`bias=False`) gets biases of 0; training changes them like others.
   *
   * @param options the stack, or `{ stack, prefix }`: with a prefix those tensors are read whose names begin with it, as by what
   * follows it, such as 'transformer_encoder.' or 'module.'.
   */
  async loadTorch(
    stateDict: TransformerStateDict,
    options?: TorchStack | LoadTorchStackOptions,
  ): Promise<void> {
    this.#handle.check();
    const { tensors, complete } = readTorchStacks(stateDict, options);
    await this.#set(tensors, complete);
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
    this.#handle.check();
    const { tensors, metadata } = readSafetensors(file);
    checkSavedConfig(this.config, metadata.headwise);
    const isMoment = ({ name }: NamedArray): boolean => /^(first|second)\./.test(name);
    const resumes = this.config.trainable && tensors.some(isMoment);
    await this.#set(resumes ? tensors : tensors.filter((tensor) => !isMoment(tensor)), {
      what: 'checkpoint',
      prefixes: [''],
      moments: resumes ? 'given' : 'anew',
    });
    const step = Number(metadata.step);
    this.#step = resumes && Number.isInteger(step) && step > 0 ? step : 0;
  }

  /** Frees the parameters; the object is of no use afterwards. May be called again. */
  dispose(): void {
    this.#handle.dispose();
  }

  /** {@link Transformer.dispose}, for `using`. */
  [disposeSymbol](): void {
    this.dispose();
  }

  async #tensors(moments: boolean): Promise<NamedArray[]> {
    const request = { op: 'getTensors', model: this.#handle.number, moments } as const;
    return (await this.#handle.run(request)).tensors as NamedArray[];
  }
}

// Reads a generator's arguments when it is called; what is wrong with them is told when it is first asked for something.
function attempt<T>(read: () => T): () => T {
  try {
    const value = read();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function readTrain(
  batches: unknown,
  value: unknown,
): { options: TrainingOptions; signal: AbortSignal | undefined } {
  const given = batches as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined;
  if (given?.[Symbol.asyncIterator] === undefined && given?.[Symbol.iterator] === undefined)
    throw invalidType(`batches: an iterable of batches wanted, got ${describe(batches)}`);
  const { signal, ...options } = readObject('options', value === undefined ? {} : value);
  return { options, signal: readSignal('signal', signal) };
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
