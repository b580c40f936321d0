// Public: the convolution of convolution.h, backward.
//
//   dX[b, j, c]      = sum over t, o of dY[b, j - t + left, o] * kernel[t, c, o]
//   dKernel[t, c, o] = sum over b, i of X[b, i + t - left, c] * dY[b, i, o]
//   dBias[o]         = sum over b, i of dY[b, i, o]
#pragma once

#include <cstdint>

#include "headwise/column_sums.h"
#include "headwise/convolution.h"
#include "headwise/job.h"
#include "headwise/product.h"
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
  bool accumulate_x = false;      // d_x is added to what is there: an input that others use as well
  bool accumulate = false;        // d_kernel and d_bias are
};

// A call in progress: Prepare adds phases to `job`, which read the arrays when they run. Holds a packed kernel, and with more
// than one tap copies of x and d_y with their padding. The object outlives the job and does not move.
class ConvolutionBackward {
 public:
  ConvolutionBackward() = default;
  ~ConvolutionBackward();
  ConvolutionBackward(const ConvolutionBackward&) = delete;
  ConvolutionBackward& operator=(const ConvolutionBackward&) = delete;

  Status Prepare(const ConvolutionBackwardArgs& args, Job& job);

 private:
  // Rows of a sequence with its padding.
  static std::int64_t Stretch(const ConvolutionBackwardArgs& args) {
    return std::int64_t{args.length} + args.kernel_size - 1;
  }
  Status PrepareInput(Job& job);
  Status PrepareKernel(Job& job);
  static void TurnTask(void* context, std::int64_t index, int thread);
  static void PadTask(void* context, std::int64_t index, int thread);

  ConvolutionBackwardArgs args_;
  PackedMatrix turned_;
  PackedConvolutionArgs d_x_;
  float* padded_x_ = nullptr;
  float* padded_d_y_ = nullptr;  // in the same block
  Product d_kernel_;
  ColumnSumsArgs bias_;
};

// Prepare and run at once.
Status RunConvolutionBackward(const ConvolutionBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
