// Public: embedding lookup, backward: dTable[ids[r]] += dY[r].
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call.
struct EmbeddingBackwardArgs {
  std::int32_t rows = 0;
  std::int32_t vocabulary = 0;        // V
  std::int32_t width = 0;             // E
  const std::int32_t* ids = nullptr;  // [rows], each 0 ... V - 1
  std::int32_t padding = -1;          // rows with this id give nothing
  float scale = 1.0F;                 // factor on dY: that of the forward pass, when its rows were scaled
  const float* d_y = nullptr;         // [rows, E]
  float* d_table = nullptr;           // [V, E]
  bool accumulate = false;            // d_table is added to what is there
};

// One phase; `args` outlives the job. Rows are added in ascending order, whatever the threads: a task has some columns of
// all rows. An id outside the table is kInvalidValue "ids", before any work.
Status AddEmbeddingBackward(const EmbeddingBackwardArgs& args, Job& job);
Status EmbeddingBackward(const EmbeddingBackwardArgs& args, ThreadPool& pool);

}  // namespace headwise
