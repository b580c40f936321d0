// Between validation and core: what a call is once all arguments are checked: plain typed arrays and sizes, so that a worker
// can be sent just this. Names are those of the core's structs, in camelCase.

/** Element strides of [batch, head, row]; the last axis is contiguous. */
export type Strides = [batch: number, head: number, row: number];

/** Strides of something broadcast to [B,H,L,S]; 0 along an axis that is repeated. */
export type BroadcastStrides = [batch: number, head: number, row: number, column: number];

/** What masking, scores and results have in common for attention and the layer. */
export interface AttentionSettings {
  batch: number;
  heads: number;
  queries: number;
  keys: number;
  softcap: number;
  bias?: { data: Float32Array; strides: BroadcastStrides };
  /** With `bits`, eight elements a byte, lowest first; strides count bytes, but for the column's, 0 or 1. */
  mask?: { data: Uint8Array; strides: BroadcastStrides; bits?: boolean };
  /** Block-sparse: columns[rows[r]] … columns[rows[r + 1] − 1] are the key blocks of query block r. */
  blockMask?: { size: number; rows: Int32Array; columns: Int32Array };
  keyPaddingMask?: Uint8Array;
  kvLengths?: Int32Array;
  qLengths?: Int32Array;
  causal: boolean;
  causalOffsets?: Int32Array;
  /** −1 is open. */
  window: [left: number, right: number];
  alibiSlopes?: Float32Array;
  sinks?: Float32Array;
  dropout?: { rate: number; seed: [low: number, high: number] };
  /** Heads whose weights are returned; 'all' of them, or none. */
  weightHeads?: Int32Array | 'all';
  /** A ScoreStage of the core. */
  scoreStage: number;
  logSumExp: boolean;
  /** Packed sequences: where each begins, and how many query rows there are altogether. */
  packed?: { qStarts: Int32Array; kStarts: Int32Array; queries: number };
  /** The results stay on the GPU. */
  resident?: boolean;
}

export interface AttentionRequest extends AttentionSettings {
  op: 'attention';
  /** No option was given. What is made of another request leaves it out. */
  isPlain?: boolean | undefined;
  kvHeads: number;
  headDim: number;
  valueDim: number;
  scale: number;
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  qStrides: Strides;
  kStrides: Strides;
  vStrides: Strides;
  outStrides: Strides;
}

/** The forward call as it was made, with its results, and the gradient of its output. */
export interface AttentionBackwardRequest extends Omit<AttentionRequest, 'op'> {
  op: 'attentionBackward';
  output: Float32Array;
  /** `[B,H,L]` of the forward pass; `logSumExp` says whether one is to be returned, here never. */
  forwardLogSumExp: Float32Array;
  dOutput: Float32Array;
}

/** A resolved configuration of a layer: no defaults left. */
export interface LayerConfig {
  embedDim: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  valueHeadDim: number;
  keyDim: number;
  valueDim: number;
  outputDim: number;
  bias: boolean;
  merge: 'concat' | 'sum';
  convolution?: { kernelSize: number; causal: boolean };
  score: 'scaled-dot' | 'dot' | 'cosine' | 'additive';
  rope?: RotarySettings;
  seed: [low: number, high: number];
}

/** A layer's parameters by the index of the core's ParameterKind. */
export type ParameterArrays = (Float32Array | undefined)[];

export interface LayerForwardRequest extends AttentionSettings {
  op: 'layerForward';
  layer: number;
  outputDim: number;
  query: Float32Array;
  key: Float32Array;
  value: Float32Array;
  averageWeights: boolean;
}

export interface LinearRequest {
  op: 'linear';
  rows: number;
  in: number;
  out: number;
  x: Float32Array;
  kernel: Float32Array;
  bias?: Float32Array;
}

export interface EmbeddingRequest {
  op: 'embedding';
  rows: number;
  vocabulary: number;
  width: number;
  ids: Int32Array;
  table: Float32Array;
}

export interface PositionalEncodingRequest {
  op: 'positionalEncoding';
  length: number;
  width: number;
}

/** A rotary embedding's scaling rule, a RotaryScaling of the core. */
export interface RotaryScaling {
  rule: number;
  factor: number;
  originalLength: number;
  low: number;
  high: number;
  magnitude: number;
  /** One a pair, with the rule that has them. */
  shortFactors?: Float32Array;
  longFactors?: Float32Array;
}

export interface RotarySettings {
  base: number;
  dim: number;
  interleaved: boolean;
  scaling?: RotaryScaling;
  /** Cosines and sines `[rows,dim/2]` by position, in the place of base and scaling. */
  tables?: { cos: Float32Array; sin: Float32Array; rows: number };
}

export interface RotaryRequest extends RotarySettings {
  op: 'rotaryEmbedding';
  batch: number;
  heads: number;
  rows: number;
  size: number;
  x: Float32Array;
  strides: Strides;
  offset: number;
  /** A position for each row; batchStride 0 where the batch shares them. */
  positions?: { data: Int32Array; batchStride: number };
}

export interface MergeRequest {
  op: 'mergeAttention';
  parts: number;
  batch: number;
  heads: number;
  rows: number;
  size: number;
  /** One a part. */
  outputs: Float32Array[];
  logSumExps: Float32Array[];
  strides: Strides;
  /** The results stay on the GPU. */
  resident?: boolean;
}

/** A resolved configuration of a cache: no defaults left. A window of 0 is none; cellType is a CellType of the core. */
export interface CacheConfig {
  batch: number;
  kvHeads: number;
  headDim: number;
  valueDim: number;
  capacity: number;
  cellType: number;
  window: number;
  sinkTokens: number;
  /** How sink tokens are turned: a SinkPositions of the core. */
  sinkPositions: number;
  rope?: RotarySettings;
  /** Where it lies: true, on the GPU or nowhere; false, in the heap. */
  resident?: boolean;
}

/**
 * Tokens for a cache, qLengths of them in each row; with `q`, attention by them. Without `k` and `v` it is attention alone, by
 * queries at each row's end. `keys` is the longest row afterwards.
 */
export interface CacheStepRequest extends AttentionSettings {
  op: 'cacheStep';
  cache: number;
  /** The lengths that the call was made for. */
  starts: Int32Array;
  kvHeads: number;
  headDim: number;
  valueDim: number;
  scale: number;
  k?: Float32Array;
  v?: Float32Array;
  kStrides?: Strides;
  vStrides?: Strides;
  q?: Float32Array;
  qStrides?: Strides;
  outStrides?: Strides;
  /** `[B,L]`: what the rows are turned by, if not by the positions that follow. */
  positions?: Int32Array;
}

/** A resolved configuration of a Transformer: the core's TransformerConfig by its fields' names. */
export type TransformerFields = Record<string, number>;

/** What one kind of a Transformer's attention may see: broadcast to [B,H,rows,keys]. */
export interface TransformerScope {
  mask?: { data: Uint8Array; strides: BroadcastStrides };
  bias?: { data: Float32Array; strides: BroadcastStrides };
}

/** What a Transformer reads; arrays of [B, length], row by row. */
export interface TransformerBatch {
  batch: number;
  sourceLength: number;
  targetLength: number;
  source?: Int32Array;
  sourceVectors?: Float32Array;
  sourceMask?: Uint8Array;
  target?: Int32Array;
  labels?: Int32Array;
  targetMask?: Uint8Array;
  memoryMask?: Uint8Array;
  /** The decoder's rows see all rows of the target. */
  targetOpen?: boolean;
  sourceScope?: TransformerScope;
  targetScope?: TransformerScope;
  memoryScope?: TransformerScope;
}

export interface TransformerForwardRequest extends TransformerBatch {
  op: 'transformerForward';
  model: number;
  logits: number;
  /** Floats of all weights of attention, 0: none wanted. */
  weights: number;
}

export interface TransformerStepRequest extends TransformerBatch {
  op: 'transformerStep';
  model: number;
  /** The core's TransformerStepArgs by its fields' names. */
  settings: Record<string, number>;
  /** Which parameters weight decay leaves out: all vectors, or those whose names match. */
  noDecay?: NoDecay;
}

export type NoDecay = 'vectors' | RegExp;

/**
 * Target tokens of every row of a decoding, which follow upon those that it has read; with the first of them the source, of one
 * sequence. `batch` is the number of rows.
 */
export interface TransformerDecodeRequest extends Omit<TransformerBatch, 'labels'> {
  op: 'transformerDecode';
  model: number;
  decoding: number;
  /** The length that the call was made for. */
  start: number;
  logits: number;
}

/** A model's tensors by name. */
export interface NamedArray {
  name: string;
  shape: number[];
  data: Float32Array;
}

/** A computation: it may be long, runs in slices and can be aborted. */
export type ComputeRequest =
  | AttentionRequest
  | AttentionBackwardRequest
  | LayerForwardRequest
  | TransformerForwardRequest
  | TransformerStepRequest
  | TransformerDecodeRequest
  | LinearRequest
  | EmbeddingRequest
  | PositionalEncodingRequest
  | RotaryRequest
  | MergeRequest
  | CacheStepRequest;

export type Operation = ComputeRequest['op'];

/** Short business with a layer. Objects of the core go by numbers that their owners choose, one sequence an engine. */
export type LayerRequest =
  | { op: 'createLayer'; layer: number; config: LayerConfig }
  | { op: 'setParameters'; layer: number; parameters: ParameterArrays }
  | { op: 'getParameters'; layer: number };

/** What must be there when a model's tensors are set. */
export interface CompleteTensors {
  /** Names the argument in errors. */
  what: string;
  /** All parameters whose names begin with one of these. */
  prefixes: string[];
  /** Biases whose names begin with one of these become 0 where they are not given. */
  withoutBiases?: string[];
  /** The optimizer's moments: all given too, begun anew, or left as they are. */
  moments: 'given' | 'anew' | 'left';
}

/** Short business with a Transformer. */
export type TransformerRequest =
  | {
      op: 'createTransformer';
      model: number;
      fields: TransformerFields;
      rope?: RotarySettings;
      moments: number;
    }
  | { op: 'setTensors'; model: number; tensors: NamedArray[]; complete?: CompleteTensors }
  | { op: 'getTensors'; model: number; moments: boolean };

/** Short business with a cache. */
export type CacheRequest =
  | { op: 'createCache'; cache: number; config: CacheConfig }
  | { op: 'forkCache'; cache: number; from: number; rows?: Int32Array }
  | { op: 'trimCache'; cache: number; lengths: Int32Array }
  | { op: 'dropTokens'; cache: number; begins: Int32Array; ends: Int32Array }
  | { op: 'readCache'; cache: number };

/** Short business with a decoding. */
export type DecodingRequest =
  | { op: 'createDecoding'; decoding: number; model: number; rows: number; capacity: number }
  | { op: 'selectDecoding'; decoding: number; rows: Int32Array };

/** Frees an object of any kind, if it is there. */
export interface DestroyRequest {
  op: 'destroy';
  number: number;
}

export type ShortRequest =
  LayerRequest | TransformerRequest | CacheRequest | DecodingRequest | DestroyRequest;

export type Request = ComputeRequest | ShortRequest;

/** Which file of web/src/wasm does a short request. */
export const shortKinds = {
  createLayer: 'layer',
  setParameters: 'layer',
  getParameters: 'layer',
  createTransformer: 'transformer',
  setTensors: 'transformer',
  getTensors: 'transformer',
  createCache: 'cache',
  forkCache: 'cache',
  trimCache: 'cache',
  dropTokens: 'cache',
  readCache: 'cache',
  createDecoding: 'decoding',
  selectDecoding: 'decoding',
  destroy: 'any',
} as const satisfies Record<ShortRequest['op'], string>;

export function isCompute(request: Request): request is ComputeRequest {
  return !Object.hasOwn(shortKinds, request.op);
}

/** Own arrays, never views of the heap. */
export interface Response {
  output?: Float32Array;
  weights?: Float32Array;
  averageWeights?: Float32Array;
  scores?: Float32Array;
  logSumExp?: Float32Array;
  dq?: Float32Array;
  dk?: Float32Array;
  dv?: Float32Array;
  dBias?: Float32Array;
  dSinks?: Float32Array;
  parameters?: ParameterArrays;
  /** A cache's, after the call. */
  lengths?: Int32Array;
  tensors?: NamedArray[];
}

/** What attention gives besides gradients. */
export const resultNames = [
  'output',
  'weights',
  'averageWeights',
  'scores',
  'logSumExp',
] as const satisfies (keyof Response)[];

/** Whether the results are to stay on the GPU. */
export function isResident(request: Request): boolean {
  return (request as { resident?: boolean }).resident === true;
}

/** One array after the other. */
export function concatenate(arrays: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

const isRegExp = (value: object): boolean =>
  Object.prototype.toString.call(value) === '[object RegExp]';

const callersNames: Readonly<Record<string, string>> = {
  sourceVectors: 'patches',
  forwardLogSumExp: 'logSumExp',
  dOut: 'dOutput',
  outputs: 'output of parts',
  logSumExps: 'logSumExp of parts',
};

/** What callers call an argument, for messages. */
export function callersName(name: string): string {
  return callersNames[name] ?? name;
}

/**
 * Every buffer that a request or response holds, each once, for copying and transferring. `name`: what callers call it.
 */
export function mapArrays<T extends object>(
  value: T,
  map: <A extends Float32Array | Int32Array | Uint8Array>(array: A, name: string) => A,
): T {
  const walk = (node: unknown, name: string): unknown => {
    if (ArrayBuffer.isView(node)) return map(node as Float32Array, name);
    if (Array.isArray(node)) return node.map((child, i) => walk(child, `${name}[${i}]`));
    if (typeof node !== 'object' || node === null || isRegExp(node)) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, child]) => [
        key,
        walk(child, key === 'data' ? name : callersName(key)),
      ]),
    );
  };
  return walk(value, 'input') as T;
}
