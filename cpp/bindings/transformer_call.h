// Binding layer: the arguments of a Transformer's forward pass and training step, with the model they go to.
#pragma once

#include "headwise/transformer.h"

namespace headwise::binding {

struct TransformerForwardArgs {
  const Transformer* model = nullptr;
  TransformerBatch batch;
  float* logits = nullptr;
  float* weights = nullptr;
};

// What a step leaves in `result`, as floats: loss, counted rows, correct rows, norm of the gradients, 1 when applied; else the
// name of the module where it went wrong, as character codes, and 0 behind it.
inline constexpr int kStepNumbers = 5;
inline constexpr int kStepResults = kStepNumbers + ParameterArena::kMostName;

struct TransformerStepArgs {
  Transformer* model = nullptr;
  TransformerBatch batch;
  std::int32_t optimizer = 0;  // an OptimizerKind
  float momentum = 0.0F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  float rate = 0.0F;
  std::int32_t step = 1;
  float smoothing = 0.0F;
  float max_norm = 0.0F;  // 0: no clipping
  std::int32_t part = 0;
  std::int32_t parts = 1;
  std::int32_t counted = 0;
  float* result = nullptr;
};

}  // namespace headwise::binding
