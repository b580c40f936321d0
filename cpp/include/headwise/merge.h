// Public: joins attention over disjoint sets of keys, computed apart: with m the largest log-sum-exp l_n of the parts,
//
//   output = sum_n e^(l_n - m) output_n / sum_n e^(l_n - m),   l = m + log sum_n e^(l_n - m)
//
// (Dao et al., "FlashAttention", 2022, section 3.1). A part whose log-sum-exp is -infinity saw no key in that row and is
// left out, whatever its output holds; where all are, the row is 0 and -infinity.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call.
struct MergeArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/merge_args.def"  // its fields and what they mean
};

// Adds the merge to `job` as one phase; `args` outlives the job. Parts are added in their order.
Status AddMerge(const MergeArgs& args, Job& job);

// The same, at once.
Status Merge(const MergeArgs& args, ThreadPool& pool);

}  // namespace headwise
