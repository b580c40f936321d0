// Public: embedding lookup. y[r] = table[ids[r]].
#pragma once

#include <cstdint>

#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call; `y` overlaps no input.
struct EmbeddingArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/embedding_args.def"  // its fields and what they mean
};

// Adds the lookup to `job` as one phase; `args` outlives the job. Every id is checked first: one outside the table
// is kInvalidValue "ids", and nothing is written.
Status AddEmbedding(const EmbeddingArgs& args, Job& job);

// The same, at once.
Status Embedding(const EmbeddingArgs& args, ThreadPool& pool);

}  // namespace headwise
