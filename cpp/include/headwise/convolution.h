// Public: one-dimensional convolution over a sequence, stride 1, one output row for every input row. Float32,
// row-major.
//
//   y[b, i, o] = bias[o] + sum over t, c of x[b, i + t - left, c] * kernel[t, c, o]
//
// Rows outside the sequence count as 0; sequences of a batch never mix. As in Keras, the kernel is not flipped, and
// padding adds kernel_size - 1 rows: 'same' puts floor((kernel_size - 1) / 2) of them to the left, causal all of them.
#pragma once

#include <cstdint>

#include "headwise/gemm.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Rows of padding before a sequence.
constexpr std::int32_t ConvolutionLeft(std::int32_t kernel_size, bool causal) {
  return causal ? kernel_size - 1 : (kernel_size - 1) / 2;
}

// The product with a kernel that is packed already, as [kernel_size * in, out]. Borrows everything; y overlaps no
// input.
struct PackedConvolutionArgs {
  std::int32_t batch = 0;   // B
  std::int32_t length = 0;  // L
  std::int32_t in = 0;
  std::int32_t kernel_size = 1;
  std::int32_t left = 0;     // rows of padding before a sequence, below kernel_size
  const float* x = nullptr;  // [B, L, in]
  const PackedMatrix* kernel = nullptr;
  const float* bias = nullptr;  // [out] or null; ignored when accumulating
  float* y = nullptr;           // [B, L, out]
  bool accumulate = false;      // added to what is there
};

// Adds the convolution to `job` as one phase; `args` outlives the job. Every element is summed tap by tap, so results
// do not depend on the thread count.
Status AddPackedConvolution(const PackedConvolutionArgs& args, Job& job);

// The same with a plain kernel.
struct ConvolutionArgs {
  std::int32_t batch = 0;   // B
  std::int32_t length = 0;  // L
  std::int32_t in = 0;
  std::int32_t out = 0;
  std::int32_t kernel_size = 1;  // at least 1; may exceed L
  std::int32_t causal = 0;
  const float* x = nullptr;       // [B, L, in]
  const float* kernel = nullptr;  // [kernel_size, in, out]
  const float* bias = nullptr;    // [out] or null
  float* y = nullptr;             // [B, L, out]
};

// A call in progress: Prepare packs the kernel and adds one phase to `job`. The object outlives the job and does not
// move.
class ConvolutionForward {
 public:
  ConvolutionForward() = default;
  ConvolutionForward(const ConvolutionForward&) = delete;
  ConvolutionForward& operator=(const ConvolutionForward&) = delete;

  // kInvalidShape for a size that cannot be, kInvalidValue for a missing pointer, kOutOfMemory when the packed kernel
  // cannot be had.
  Status Prepare(const ConvolutionArgs& args, Job& job);

 private:
  PackedMatrix kernel_;
  PackedConvolutionArgs product_;
};

// Prepare and run at once.
Status Convolution(const ConvolutionArgs& args, ThreadPool& pool);

}  // namespace headwise
