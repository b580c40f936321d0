// ONNX: the sub-path `headwise/onnx`: operators that exporters write, with their names for inputs, attributes and outputs.
export { gelu, softmax } from './activations.js';
export {
  attention,
  type AttentionAttributes,
  type AttentionInputs,
  type AttentionOutput,
  type AttentionOutputs,
} from './attention.js';
export type { OperatorOptions } from './attend.js';
export {
  groupQueryAttention,
  type GroupQueryAttentionAttributes,
  type GroupQueryAttentionInputs,
  type GroupQueryAttentionOutput,
  type GroupQueryAttentionOutputs,
} from './group-query-attention.js';
export {
  microsoftAttention,
  type MicrosoftAttentionAttributes,
  type MicrosoftAttentionInputs,
  type MicrosoftAttentionOutput,
  type MicrosoftAttentionOutputs,
} from './microsoft-attention.js';
export {
  multiHeadAttention,
  type MultiHeadAttentionAttributes,
  type MultiHeadAttentionInputs,
  type MultiHeadAttentionOutput,
  type MultiHeadAttentionOutputs,
} from './multi-head-attention.js';
export {
  layerNormalization,
  rmsNormalization,
  type LayerNormalizationInputs,
  type NormalizationAttributes,
  type RmsNormalizationInputs,
} from './normalization.js';
export {
  microsoftRotaryEmbedding,
  rotaryEmbedding,
  type MicrosoftRotaryEmbeddingAttributes,
  type MicrosoftRotaryEmbeddingInputs,
  type RotaryEmbeddingAttributes,
  type RotaryEmbeddingInputs,
} from './rotary-embedding.js';
export type {
  OnnxData,
  OnnxFloatType,
  OnnxIntegersLike,
  OnnxTensor,
  OnnxTensorLike,
  OnnxType,
} from './tensors.js';
