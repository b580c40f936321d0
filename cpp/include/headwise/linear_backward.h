// Public: the dense layer y = x W + b, backward: dX = dY W^T, dW = X^T dY, db = sum over rows of dY.
#pragma once

#include <cstdint>

#include "headwise/convolution_backward.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call; outputs overlap no input.
struct LinearBackwardArgs {
  std::int32_t rows = 0;
  std::int32_t in = 0;
  std::int32_t out = 0;
  const float* x = nullptr;       // [rows, in]; needed for d_kernel
  const float* kernel = nullptr;  // [in, out]; needed for d_x
  const float* d_y = nullptr;     // [rows, out]
  float* d_x = nullptr;           // [rows, in], null: not wanted
  float* d_kernel = nullptr;      // [in, out], null: not wanted
  float* d_bias = nullptr;        // [out], null: not wanted
  bool accumulate_x = false;      // d_x is added to what is there: an input that others use as well
  bool accumulate = false;        // d_kernel and d_bias are
};

// A call in progress: Prepare adds phases to `job`, which read the arrays when they run. The object outlives the job and
// does not move.
class LinearBackward {
 public:
  LinearBackward() = default;
  LinearBackward(const LinearBackward&) = delete;
  LinearBackward& operator=(const LinearBackward&) = delete;

  Status Prepare(const LinearBackwardArgs& args, Job& job);

 private:
  ConvolutionBackward convolution_;
};

// Prepare and run at once.
Status RunLinearBackward(const LinearBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
