// Layer: the multi-head attention layer's object, which owns the parameters: start values, set, get.
#include <algorithm>

#include "headwise/multi_head_attention.h"
#include "headwise/random.h"
#include "layer/parameter.h"
#include "memory/aligned.h"

namespace headwise {
namespace {

// A set of parameters that is released unless it is taken: what makes "all or none" true.
class NewParameters {
 public:
  NewParameters() = default;
  ~NewParameters() {
    for (LayerParameter* parameter : parameters) Release(parameter);
  }
  NewParameters(const NewParameters&) = delete;
  NewParameters& operator=(const NewParameters&) = delete;

  LayerParameter* parameters[kParameterKinds] = {};
};

struct Fans {
  std::int64_t in;
  std::int64_t out;
};

// Inputs and outputs of one unit of the whole product (all heads together), as Keras counts them for a Dense or Conv1D
// kernel: [E, H, D] is the matrix [E, H * D]. A score kernel maps D numbers to one.
Fans FansOf(const MultiHeadAttentionConfig& config, ParameterKind kind) {
  const MatrixShape shape = MatrixOfParameter(config, kind);
  if (kind == ParameterKind::kScoreKernel) return {config.head_dim, 1};
  if (kind == ParameterKind::kOutputKernel) return {shape.rows, shape.columns};
  return {shape.rows, std::int64_t{config.kernel_size} * shape.columns};
}

bool IsBias(ParameterKind kind) {
  return kind == ParameterKind::kQueryBias || kind == ParameterKind::kKeyBias || kind == ParameterKind::kValueBias ||
         kind == ParameterKind::kOutputBias;
}

Status MakeStartValue(const MultiHeadAttentionConfig& config, ParameterKind kind, LayerParameter*& made) {
  const std::int64_t elements = ShapeOfParameter(config, kind).elements();
  const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(elements), sizeof(float));
  auto* const values = static_cast<float*>(AllocateAligned(bytes));
  if (values == nullptr) return Status::OutOfMemory(bytes);
  if (IsBias(kind)) {
    std::fill_n(values, elements, 0.0F);
  } else {
    const std::uint64_t seed = (std::uint64_t{config.seed_high} << 32U) | config.seed_low;
    const Fans fans = FansOf(config, kind);
    GlorotUniform(seed, static_cast<std::uint32_t>(kind), fans.in, fans.out, elements, values);
  }
  const Status status = MakeParameter(config, kind, values, made);
  FreeAligned(values);
  return status;
}

}  // namespace

MultiHeadAttention::~MultiHeadAttention() {
  for (LayerParameter* parameter : parameters_) Release(parameter);
}

Status MultiHeadAttention::Init(const MultiHeadAttentionConfig& config) {
  MultiHeadAttentionConfig resolved = config;
  if (const Status status = ResolveConfig(resolved); !status.ok()) return status;
  RotaryArrays rope_arrays;
  if (const Status status = rope_arrays.Keep(resolved.rope); !status.ok()) return status;
  NewParameters made;
  for (int i = 0; i < kParameterKinds; ++i) {
    const auto kind = static_cast<ParameterKind>(i);
    if (ShapeOfParameter(resolved, kind).rank == 0) continue;
    if (const Status status = MakeStartValue(resolved, kind, made.parameters[i]); !status.ok()) return status;
  }
  config_ = resolved;
  rope_arrays_ = rope_arrays;
  std::swap_ranges(parameters_, parameters_ + kParameterKinds, made.parameters);
  return Status::Ok();
}

Status MultiHeadAttention::SetParameters(const ParameterSources& sources) {
  NewParameters made;
  for (int i = 0; i < kParameterKinds; ++i) {
    if (sources.data[i] == nullptr) continue;
    const auto kind = static_cast<ParameterKind>(i);
    if (parameters_[i] == nullptr) return Status::InvalidValue("weights");
    const Status status = MakeParameter(config_, kind, sources.data[i], made.parameters[i]);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < kParameterKinds; ++i) {
    if (made.parameters[i] != nullptr) std::swap(parameters_[i], made.parameters[i]);
  }
  return Status::Ok();
}

void MultiHeadAttention::GetParameter(ParameterKind kind, float* target) const {
  const LayerParameter* const parameter = parameters_[static_cast<int>(kind)];
  if (parameter != nullptr) parameter->matrix.Unpack(target);
}

ParameterShape MultiHeadAttention::Shape(ParameterKind kind) const {
  return parameters_[static_cast<int>(kind)] == nullptr ? ParameterShape{} : ShapeOfParameter(config_, kind);
}

}  // namespace headwise
