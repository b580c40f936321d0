// Layer: a multi-head attention layer's configuration, its defaults and its parameters' shapes. Pure.
#include <cmath>
#include <cstdint>
#include <limits>

#include "headwise/multi_head_attention.h"

namespace headwise {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

Status CheckKinds(const MultiHeadAttentionConfig& config) {
  if (config.merge != MergeKind::kConcat && config.merge != MergeKind::kSum) return Status::InvalidValue("merge");
  if (config.projection != ProjectionKind::kDense && config.projection != ProjectionKind::kConvolution) {
    return Status::InvalidValue("projection");
  }
  switch (config.score) {
    case LayerScore::kScaledDot:
    case LayerScore::kDot:
    case LayerScore::kCosine:
    case LayerScore::kAdditive:
      return Status::Ok();
  }
  return Status::InvalidValue("score");
}

// Every parameter, as a matrix, is to be counted in 32 bits on each side.
Status CheckCounts(const MultiHeadAttentionConfig& config) {
  const std::int64_t taps = config.kernel_size;
  if (std::int64_t{config.heads} * config.head_dim > kMaxCount) return Status::InvalidShape("headDim");
  if (std::int64_t{config.heads} * config.value_head_dim > kMaxCount) return Status::InvalidShape("valueHeadDim");
  if (taps * config.embed_dim > kMaxCount) return Status::InvalidShape("embedDim");
  if (taps * config.key_dim > kMaxCount) return Status::InvalidShape("keyDim");
  if (taps * config.value_dim > kMaxCount) return Status::InvalidShape("valueDim");
  return Status::Ok();
}

ParameterShape Shape(std::int32_t a) { return {1, {a, 1, 1, 1}}; }
ParameterShape Shape(std::int32_t a, std::int32_t b) { return {2, {a, b, 1, 1}}; }
ParameterShape Shape(std::int32_t a, std::int32_t b, std::int32_t c) { return {3, {a, b, c, 1}}; }

ParameterShape ProjectionShape(const MultiHeadAttentionConfig& config, std::int32_t in, std::int32_t heads,
                               std::int32_t size) {
  if (config.projection == ProjectionKind::kConvolution) return {4, {config.kernel_size, in, heads, size}};
  return Shape(in, heads, size);
}

}  // namespace

Status ResolveConfig(MultiHeadAttentionConfig& config) {
  MultiHeadAttentionConfig c = config;
  if (c.embed_dim < 1) return Status::InvalidShape("embedDim");
  if (c.heads < 1) return Status::InvalidShape("numHeads");
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.kv_heads < 1 || c.heads % c.kv_heads != 0) return Status::InvalidShape("numKvHeads");
  if (c.head_dim == 0 && c.embed_dim % c.heads != 0) return Status::InvalidShape("numHeads");
  if (c.head_dim == 0) c.head_dim = c.embed_dim / c.heads;
  if (c.head_dim < 1) return Status::InvalidShape("headDim");
  if (c.value_head_dim == 0) c.value_head_dim = c.head_dim;
  if (c.value_head_dim < 1) return Status::InvalidShape("valueHeadDim");
  if (c.key_dim == 0) c.key_dim = c.embed_dim;
  if (c.key_dim < 1) return Status::InvalidShape("keyDim");
  if (c.value_dim == 0) c.value_dim = c.key_dim;
  if (c.value_dim < 1) return Status::InvalidShape("valueDim");
  if (c.output_dim == 0) c.output_dim = c.embed_dim;
  if (c.output_dim < 1) return Status::InvalidShape("outputDim");
  if (const Status status = CheckKinds(c); !status.ok()) return status;
  if (c.projection == ProjectionKind::kDense) {
    c.kernel_size = 1;
    c.causal_convolution = 0;
  }
  if (c.kernel_size < 1) return Status::InvalidShape("projection.kernelSize");
  if (c.rope.dim != 0) {
    if (const Status status = CheckRotarySettings(c.rope, c.head_dim); !status.ok()) return status;
  }
  if (const Status status = CheckCounts(c); !status.ok()) return status;
  config = c;
  return Status::Ok();
}

ParameterShape ShapeOfParameter(const MultiHeadAttentionConfig& config, ParameterKind kind) {
  const bool bias = config.bias != 0;
  switch (kind) {
    case ParameterKind::kQueryKernel:
      return ProjectionShape(config, config.embed_dim, config.heads, config.head_dim);
    case ParameterKind::kQueryBias:
      return bias ? Shape(config.heads, config.head_dim) : ParameterShape{};
    case ParameterKind::kKeyKernel:
      return ProjectionShape(config, config.key_dim, config.kv_heads, config.head_dim);
    case ParameterKind::kKeyBias:
      return bias ? Shape(config.kv_heads, config.head_dim) : ParameterShape{};
    case ParameterKind::kValueKernel:
      return ProjectionShape(config, config.value_dim, config.kv_heads, config.value_head_dim);
    case ParameterKind::kValueBias:
      return bias ? Shape(config.kv_heads, config.value_head_dim) : ParameterShape{};
    case ParameterKind::kOutputKernel:
      return Shape(config.merge == MergeKind::kSum ? 1 : config.heads, config.value_head_dim, config.output_dim);
    case ParameterKind::kOutputBias:
      return bias ? Shape(config.output_dim) : ParameterShape{};
    case ParameterKind::kScoreKernel:
      return config.score == LayerScore::kAdditive ? Shape(config.heads, config.head_dim) : ParameterShape{};
  }
  return {};
}

}  // namespace headwise
