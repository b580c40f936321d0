// Public: the dense layer y = x W + b over the last axis, float32, row-major.
#pragma once

#include <cstdint>

#include "headwise/convolution.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call; `y` overlaps no input.
struct LinearArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/linear_args.def"  // its fields and what they mean
};

// A call in progress: Prepare packs the kernel and adds one phase to `job`. The object outlives the job and does not
// move.
class LinearForward {
 public:
  LinearForward() = default;
  LinearForward(const LinearForward&) = delete;
  LinearForward& operator=(const LinearForward&) = delete;

  // kInvalidShape for a negative size, kInvalidValue for a missing pointer, kOutOfMemory when the packed kernel cannot
  // be had. With in = 0 every row of y is the bias (or 0).
  Status Prepare(const LinearArgs& args, Job& job);

 private:
  ConvolutionForward convolution_;  // of one tap
};

// Prepare and run at once.
Status Linear(const LinearArgs& args, ThreadPool& pool);

}  // namespace headwise
