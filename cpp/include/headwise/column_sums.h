// Public: the sum of all rows, as the gradient of a bias has it, a block of columns a task.
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"

namespace headwise {

struct ColumnSumsArgs {
  std::int64_t rows = 0;
  std::int32_t width = 0;
  const float* x = nullptr;  // [rows, width]
  float* sums = nullptr;     // [width]; null: not wanted
  bool accumulate = false;   // added to what is there
};

// One phase; `args` outlives the job.
Status AddColumnSums(const ColumnSumsArgs& args, Job& job);

}  // namespace headwise
