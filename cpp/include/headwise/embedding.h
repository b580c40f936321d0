// Public: embedding lookup. y[r] = table[ids[r]].
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call; `y` overlaps no input.
struct EmbeddingArgs {
  std::int32_t rows = 0;              // ids, all axes together
  std::int32_t vocabulary = 0;        // V
  std::int32_t width = 0;             // E
  const std::int32_t* ids = nullptr;  // [rows], each 0 ... V - 1
  const float* table = nullptr;       // [V, E]
  float* y = nullptr;                 // [rows, E]
};

// Adds the lookup to `job` as one phase; `args` outlives the job. Every id is looked at before: one outside the table
// is kInvalidValue "ids", and nothing is written.
Status AddEmbedding(const EmbeddingArgs& args, Job& job);

// The same, at once.
Status Embedding(const EmbeddingArgs& args, ThreadPool& pool);

}  // namespace headwise
