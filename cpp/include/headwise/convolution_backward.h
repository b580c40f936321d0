// Public: the convolution of convolution.h, backward.
//
//   dX[b, j, c]      = sum over t, o of dY[b, j - t + left, o] * kernel[t, c, o]
//   dKernel[t, c, o] = sum over b, i of X[b, i + t - left, c] * dY[b, i, o]
//   dBias[o]         = sum over b, i of dY[b, i, o]
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call; outputs overlap no input.
struct ConvolutionBackwardArgs {
  std::int32_t batch = 0;   // B
  std::int32_t length = 0;  // L
  std::int32_t in = 0;
  std::int32_t out = 0;
  std::int32_t kernel_size = 1;
  std::int32_t causal = 0;
  const float* x = nullptr;       // [B, L, in]; needed for d_kernel
  const float* kernel = nullptr;  // [kernel_size, in, out]; needed for d_x
  const float* d_y = nullptr;     // [B, L, out]
  float* d_x = nullptr;           // [B, L, in], null: not wanted
  float* d_kernel = nullptr;      // [kernel_size, in, out], null: not wanted
  float* d_bias = nullptr;        // [out], null: not wanted
  bool accumulate = false;        // d_kernel and d_bias are added to what is there
};

// Up to three phases; `args` outlives the job. Plain loops, in an order that does not depend on the threads.
Status AddConvolutionBackward(const ConvolutionBackwardArgs& args, Job& job);
Status ConvolutionBackward(const ConvolutionBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
