// Public: rotary position embedding (Su et al., "RoFormer", 2021). Pair i of a head's vector at position p is turned by
// the angle p * base^(-2i / dim):
//
//   (a, b) <- (a cos - b sin, a sin + b cos)
//
// interleaved: the pair is (x[2i], x[2i + 1]); else it is (x[i], x[i + dim / 2]). Only the first `dim` elements turn,
// the tail is copied. Angles, sines and cosines are computed in double.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call. `y` may be `x` (with equal strides), else they do not overlap.
struct RotaryArgs {
  std::int32_t batch = 0;  // B
  std::int32_t heads = 0;  // H
  std::int32_t rows = 0;   // L
  std::int32_t size = 0;   // D
  std::int32_t dim = 0;    // even, 2 ... D
  std::int32_t interleaved = 0;
  float base = 10000.0F;  // finite, above 0
  const float* x = nullptr;
  float* y = nullptr;
  Strides x_strides;
  Strides y_strides;
  // Row i of batch entry b stands at position i + position + positions[b]; null: no such addend.
  std::int32_t position = 0;
  const std::int32_t* positions = nullptr;  // [B]
};

// Adds the rotation to `job` as one phase; `args` outlives the job. kInvalidShape: a negative size, or a dim that is
// odd or above D; kInvalidValue: a base that is not finite and above 0, a missing pointer.
Status AddRotary(const RotaryArgs& args, Job& job);

// The same, at once.
Status Rotary(const RotaryArgs& args, ThreadPool& pool);

}  // namespace headwise
