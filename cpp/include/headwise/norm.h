// Public: layer normalisation (Ba et al., 2016) and RMS normalisation (Zhang and Sennrich, 2019) over the last axis, forward
// and backward.
//
//   layer: y = (x - mean) / sqrt(var + epsilon) * gain + shift, var = mean of (x - mean)^2 (divided by the width, two-pass)
//   RMS:   y = x / sqrt(mean of x^2 + epsilon) * gain
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

enum class NormKind : std::int32_t { kLayer = 0, kRms = 1 };

// All pointers are borrowed for the length of the call. `y` may be `x`.
struct NormArgs {
  NormKind kind = NormKind::kLayer;
  std::int32_t rows = 0;
  std::int32_t width = 0;
  float epsilon = 1e-5F;         // at least 0; inside the root
  const float* x = nullptr;      // [rows, width]
  const float* gain = nullptr;   // [width], null: 1
  const float* shift = nullptr;  // [width], null: 0; layer only
  float* y = nullptr;            // [rows, width]
  float* mean = nullptr;         // [rows], null: not kept; layer only
  float* inverse = nullptr;      // [rows], 1 / the root, null: not kept
};

// One phase; `args` outlives the job.
Status AddNorm(const NormArgs& args, Job& job);
Status Norm(const NormArgs& args, ThreadPool& pool);

// With x^ the normalised row and g = dY gain: dX = inverse (g - mean(g) - x^ mean(g x^)), without mean(g) for RMS;
// dGain = sum over rows of dY x^, dShift = sum over rows of dY.
struct NormBackwardArgs {
  NormKind kind = NormKind::kLayer;
  std::int32_t rows = 0;
  std::int32_t width = 0;
  const float* x = nullptr;
  const float* gain = nullptr;
  const float* mean = nullptr;  // as kept by the forward pass; layer only
  const float* inverse = nullptr;
  const float* d_y = nullptr;  // [rows, width]
  float* d_x = nullptr;        // [rows, width], null: not wanted; may be d_y
  float* d_gain = nullptr;     // [width], null: not wanted
  float* d_shift = nullptr;    // [width], null: not wanted; layer only
  bool accumulate = false;     // d_gain and d_shift are added to what is there
};

// Two phases; `args` outlives the job. Each sum over rows is one task's, in ascending order.
Status AddNormBackward(const NormBackwardArgs& args, Job& job);
Status NormBackward(const NormBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
