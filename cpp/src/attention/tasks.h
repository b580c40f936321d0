// Attention driver: the tasks of a call. Each is a TaskFunction whose context is the AttentionCall.
#pragma once

#include <cstdint>

#include "attention/call.h"

namespace headwise {

// Some rows of one head against all keys, packed block by block.
void TiledTask(void* call, std::int64_t index, int thread);

// The same in phases, one for each chunk of the keys, of as many tasks as a round has: first_task is that of the round.
struct ChunkPhase {
  const AttentionCall* call;
  std::int64_t first_task;
  std::int32_t chunk;
};
void ChunkTask(void* phase, std::int64_t index, int thread);

// Bytes of a task's states in call.states.
std::uint64_t StateBytes(const AttentionPlan& plan, int lanes);

// Which rows a task has; the last rows come first.
struct TaskRows {
  std::int32_t batch, head, first, last;
};
TaskRows RowsOfTask(const AttentionCall& call, std::int64_t index);

// The softmax alone, in natural units, for a call without values: the rows' maxima and sums of lifted weights.
void TiledSums(const AttentionCall& call, std::int64_t index, int thread, float* max, float* sums);

// All rows of one key/value head against one split of the keys, where they lie. With several splits the states go to
// call.partials, and MergeTask joins those of one key/value head.
void DirectTask(void* call, std::int64_t index, int thread);
void MergeTask(void* call, std::int64_t index, int thread);

// Floats of call.partials.
std::uint64_t PartialFloats(const AttentionPlan& plan, std::int64_t kv_heads);

// Shared by both: the sum of a row's partial sums, lane by lane in ascending order.
inline float SumLanes(const float* sums, int lanes) {
  float total = 0.0F;
  for (int i = 0; i < lanes; ++i) total += sums[i];
  return total;
}

}  // namespace headwise
