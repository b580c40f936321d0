// Public: joins attention over disjoint sets of keys, computed apart: with m the largest log-sum-exp l_n of the parts,
//
//   output = sum_n e^(l_n - m) output_n / sum_n e^(l_n - m),   l = m + log sum_n e^(l_n - m)
//
// (Dao et al., "FlashAttention", 2022, section 3.1). A part whose log-sum-exp is -infinity saw no key in that row and is
// left out, whatever its output holds; where all are, the row is 0 and -infinity.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call.
struct MergeArgs {
  std::int32_t parts = 0;
  std::int32_t batch = 0;               // B
  std::int32_t heads = 0;               // H
  std::int32_t rows = 0;                // L
  std::int32_t size = 0;                // Dv
  const float* outputs = nullptr;       // [parts, B * H * L * Dv]: each through `strides`
  const float* log_sum_exps = nullptr;  // [parts,B,H,L]
  float* out = nullptr;                 // through `strides`
  float* log_sum_exp = nullptr;         // [B,H,L]
  Strides strides;
};

// Adds the merge to `job` as one phase; `args` outlives the job. Parts are added in their order.
Status AddMerge(const MergeArgs& args, Job& job);

// The same, at once.
Status Merge(const MergeArgs& args, ThreadPool& pool);

}  // namespace headwise
