// Public: what the package exports.
export { createEngine } from './create-engine.js';
export type { Engine, EngineInfo, MemoryInfo } from './engine.js';
export type { CostModel } from './backend/cost-model.js';
export type { CallReasonCode, GpuInfo, GpuReasonCode, LastCall } from './gpu-info.js';
export {
  HeadwiseError,
  type ErrorCode,
  type GenerationError,
  type TrainingError,
} from './errors.js';
export { GpuTensor } from './gpu-tensor.js';
export type { KVCache } from './kv-cache.js';
export type { MultiHeadAttention } from './layer/multi-head-attention.js';
export type { LayerWeights, LayerWeightsLike, ProjectionWeights } from './layer/parameters.js';
export type { LoadTorchOptions, TorchStateDict } from './layer/torch.js';
export type {
  AttentionGradients,
  AttentionResult,
  AttentionResultOf,
  OptionsOf,
  ResidentAttentionResult,
} from './results.js';
export { Tensor, tensor } from './tensor.js';
export type { TensorLike } from './tensor-like.js';
export type {
  BitMask,
  BlockMask,
  BooleansLike,
  FloatData,
  FloatsLike,
  IntegersLike,
  NestedNumbers,
} from './tensor-types.js';
export type {
  GenerateInput,
  TrainingBatch,
  TrainingOptions,
  TransformerInput,
} from './transformer/batch.js';
export type { TransformerConfig } from './transformer/config.js';
export type { TransformerDecoding } from './transformer/decoding.js';
export type { GenerateOptions } from './transformer/sample.js';
export type { TransformerAttentionOptions, TransformerMasks } from './transformer/scopes.js';
export {
  warmupSchedule,
  type TrainingProgress,
  type Transformer,
  type TransformerWeights,
} from './transformer/transformer.js';
export type {
  LoadTorchStackOptions,
  TorchStack,
  TransformerStateDict,
} from './transformer/torch.js';
export type { AttentionOptions } from './validation/attention.js';
export type { MaskingOptions, ScoreStage } from './options/masking-options.js';
export type { EngineOptions, GpuPrecision } from './validation/engine-options.js';
export type {
  AppendOptions,
  AttendOptions,
  CacheType,
  KVCacheConfig,
} from './validation/kv-cache.js';
export type { MultiHeadAttentionConfig } from './validation/layer-config.js';
export type { ForwardOptions } from './validation/layer-forward.js';
export type { AttentionPart, MergeOptions } from './validation/merge.js';
export type { RopeOptions, RopeScaling, RotaryOptions } from './validation/rotary.js';
export type { HalfTensorLike, StateTensorLike } from './validation/state-dict.js';
export { version } from './version.js';
