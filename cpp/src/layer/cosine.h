// Layer: vectors brought to length 1, for scores that are cosines.
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"

namespace headwise {

// x[r] <- x[r] / max(|x[r]|, 1e-12), for `rows` adjacent vectors. The length is computed in double and cannot overflow.
struct NormalizeArgs {
  std::int64_t rows = 0;
  std::int32_t size = 0;
  float* x = nullptr;
};

// One phase; `args` outlives the job.
Status AddNormalize(NormalizeArgs& args, Job& job);

}  // namespace headwise
