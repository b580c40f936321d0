// Public: activations, element by element, forward and backward.
//
//   ReLU: max(x, 0), slope 0 at 0
//   GELU (Hendrycks and Gimpel, 2016): x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2
//   GELU by tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

enum class ActivationKind : std::int32_t { kRelu = 0, kGelu = 1, kGeluTanh = 2 };

// All pointers are borrowed for the length of the call.
struct ActivationArgs {
  ActivationKind kind = ActivationKind::kRelu;
  std::int64_t count = 0;
  const float* x = nullptr;
  float* y = nullptr;  // may be x
};

// One phase; `args` outlives the job.
Status AddActivation(const ActivationArgs& args, Job& job);
Status Activation(const ActivationArgs& args, ThreadPool& pool);

struct ActivationBackwardArgs {
  ActivationKind kind = ActivationKind::kRelu;
  std::int64_t count = 0;
  const float* x = nullptr;  // the forward pass' input
  const float* d_y = nullptr;
  float* d_x = nullptr;  // may be d_y
};

Status AddActivationBackward(const ActivationBackwardArgs& args, Job& job);
Status ActivationBackward(const ActivationBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
