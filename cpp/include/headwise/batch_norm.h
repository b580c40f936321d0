// Public: batch normalisation (Ioffe and Szegedy, 2015) of [rows, width] over the rows, forward and backward.
//
//   training: y = (x - mean) / sqrt(var + epsilon) * gain + shift with the batch's mean and variance (divided by the rows);
//             running <- (1 - momentum) running + momentum * batch, the variance there divided by rows - 1 (as PyTorch)
//   else:     the same with the running mean and variance
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call. `y` may be `x`.
struct BatchNormArgs {
  std::int32_t rows = 0;
  std::int32_t width = 0;
  bool training = false;
  float epsilon = 1e-5F;
  float momentum = 0.1F;
  const float* x = nullptr;           // [rows, width]
  const float* gain = nullptr;        // [width], null: 1
  const float* shift = nullptr;       // [width], null: 0
  float* running_mean = nullptr;      // [width]; read, and written when training
  float* running_variance = nullptr;  // [width]
  float* y = nullptr;                 // [rows, width]
  float* mean = nullptr;              // [width], null: not kept; what was subtracted
  float* inverse = nullptr;           // [width], null: not kept; 1 / the root
};

// One phase; `args` outlives the job. A batch of one row leaves the running variance as it is.
Status AddBatchNorm(const BatchNormArgs& args, Job& job);
Status BatchNorm(const BatchNormArgs& args, ThreadPool& pool);

struct BatchNormBackwardArgs {
  std::int32_t rows = 0;
  std::int32_t width = 0;
  bool training = false;  // as in the forward pass: whether mean and variance moved with x
  const float* x = nullptr;
  const float* gain = nullptr;
  const float* mean = nullptr;  // [width], as kept
  const float* inverse = nullptr;
  const float* d_y = nullptr;
  float* d_x = nullptr;      // [rows, width]; may be d_y
  float* d_gain = nullptr;   // [width], null: not wanted
  float* d_shift = nullptr;  // [width], null: not wanted
  bool accumulate = false;   // d_gain and d_shift are added to what is there
};

// One phase; a column is one task's.
Status AddBatchNormBackward(const BatchNormBackwardArgs& args, Job& job);
Status BatchNormBackward(const BatchNormBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
