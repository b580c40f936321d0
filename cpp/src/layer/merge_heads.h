// Layer: what happens to the heads' outputs and weights after attention, row by row.
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"

namespace headwise {

// x[r, 0, :] <- x[r, 0, :] + ... + x[r, heads - 1, :], in that order, for x [rows, heads, size]; the other heads are
// left.
struct SumHeadsArgs {
  std::int64_t rows = 0;
  std::int32_t heads = 0;
  std::int32_t size = 0;
  float* x = nullptr;
};
Status AddSumHeads(SumHeadsArgs& args, Job& job);

// The mean of weights [B,H,L,S] over the heads, and a copy of some of them. The mean is summed in double.
struct AverageWeightsArgs {
  std::int32_t batch = 0;
  std::int32_t heads = 0;
  std::int32_t queries = 0;
  std::int32_t keys = 0;
  const float* weights = nullptr;           // [B,H,L,S]
  float* average = nullptr;                 // [B,L,S]
  float* selected = nullptr;                // [B,n,L,S] or null
  const std::int32_t* selection = nullptr;  // [n]
  std::int32_t selection_count = 0;
};
Status AddAverageWeights(AverageWeightsArgs& args, Job& job);

// Rows q_lengths[b] ... rows - 1 of y [B, rows, size] become 0.
struct ClearPaddingArgs {
  std::int32_t batch = 0;
  std::int32_t rows = 0;
  std::int32_t size = 0;
  const std::int32_t* lengths = nullptr;  // [B]
  float* y = nullptr;
};
Status AddClearPadding(ClearPaddingArgs& args, Job& job);

}  // namespace headwise
