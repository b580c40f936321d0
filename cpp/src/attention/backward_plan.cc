// Plan: see backward_plan.h.
#include "attention/backward_plan.h"

#include <algorithm>

namespace headwise {
namespace {

// A multiple of the row tiles (6 and 4) and of the kernel's eight steps, since rows are also the depth of dV^T = dO^T P.
// Scores, dO V^T and gradients of a tile (3 x 24 KiB) stay in the second-level cache.
constexpr int kBlockRows = 96;

constexpr int kPartKeys = 2048;                        // 2.6 MB a thread at D = Dv = 64
constexpr std::int64_t kPartNumbers = 2 * 128 * 2048;  // of keys and values: where heads are large, fewer keys
constexpr int kEnoughTasks = 16;                       // below it, more chunks for the sake of the threads

// About 30 ms: a task is what AbortSignal waits for. A row without keys still has its zeros written, which takes as long as
// some keys do.
constexpr double kTaskFlops = 6e8;
constexpr int kLeastKeys = 16;

constexpr double kDeltaNumbers = 1 << 22;  // of dO, in a task: a few milliseconds
constexpr int kRowOverhead = 64;           // what a row costs beside its numbers, in numbers

constexpr int RoundUp(std::int64_t n, int to) { return static_cast<int>((n + to - 1) / to * to); }
constexpr std::int64_t CeilDiv(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

}  // namespace

AttentionBackwardPlan::Chunks AttentionBackwardPlan::ChunksOf(int phase, int task) const {
  const int many = phases();
  const int few = tasks();
  const int other = (task + phase) % many;
  // The many are first met by the last task, but for those of phase 0; after one round it meets old ones.
  const bool first_of_other = phase == 0 || (task == few - 1 && task + phase < many);
  if (row_chunks > key_chunks) return {other, task, first_of_other, phase == 0};
  return {task, other, phase == 0, first_of_other};
}

AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& s, const KernelGeometry& kernels) {
  AttentionBackwardPlan plan{};
  plan.padded_dim = RoundUp(s.head_dim, kernels.panel);
  plan.block_rows = std::min(RoundUp(std::max(s.queries, 1), kernels.row_tile), RoundUp(kBlockRows, kernels.row_tile));
  plan.block_keys = RoundUp(std::clamp(s.keys, 1, kMostBackwardKeys), kernels.panel);
  const std::int64_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  const std::int64_t units = std::int64_t{s.batch} * s.kv_heads;
  const double size = std::max(double(s.head_dim) + s.value_dim, 1.0);
  const double pair = 5.0 * static_cast<double>(group) * size;  // operations of one query and one key
  while (pair * plan.block_rows * plan.block_keys > kTaskFlops && plan.block_rows > kernels.row_tile) {
    plan.block_rows = RoundUp(plan.block_rows / 2, kernels.row_tile);
  }
  while (pair * plan.block_rows * plan.block_keys > kTaskFlops && plan.block_keys > kernels.panel) {
    plan.block_keys = RoundUp(plan.block_keys / 2, kernels.panel);
  }

  const double flops = pair * std::max(s.queries, 1) * std::max(s.keys, kLeastKeys);
  const std::int64_t most_rows = std::max<std::int64_t>(1, CeilDiv(s.queries, plan.block_rows));
  const std::int64_t most_keys = std::max<std::int64_t>(1, CeilDiv(s.keys, plan.block_keys));
  std::int64_t rows = 1;
  while (rows < std::min(most_rows, most_keys) &&
         (units * rows < kEnoughTasks || flops / (double(rows) * double(rows)) > kTaskFlops)) {
    ++rows;
  }
  // Where one side has no more to cut, the other one is.
  std::int64_t keys = rows;
  const auto enough = [&](std::int64_t others) {
    return static_cast<std::int64_t>(flops / (kTaskFlops * double(others))) + 1;
  };
  if (flops > kTaskFlops * double(rows) * double(keys)) {
    (most_rows > most_keys ? rows : keys) =
        most_rows > most_keys ? std::min(most_rows, enough(keys)) : std::min(most_keys, enough(rows));
  }
  plan.chunk_rows = RoundUp(CeilDiv(std::max(s.queries, 1), rows), plan.block_rows);
  plan.chunk_keys = RoundUp(CeilDiv(std::max(s.keys, 1), keys), plan.block_keys);
  plan.row_chunks = static_cast<int>(CeilDiv(std::max(s.queries, 1), plan.chunk_rows));
  plan.key_chunks = static_cast<int>(CeilDiv(std::max(s.keys, 1), plan.chunk_keys));

  const std::int64_t fitting = kPartNumbers / std::max<std::int64_t>(std::int64_t{s.head_dim} + s.value_dim, 1);
  const std::int64_t part = std::clamp<std::int64_t>(fitting, 1, kPartKeys) / plan.block_keys * plan.block_keys;
  plan.part_keys = std::min(plan.chunk_keys, std::max(static_cast<int>(part), plan.block_keys));

  const double blocks = kDeltaNumbers / ((double(s.value_dim) + kRowOverhead) * plan.block_rows);
  plan.delta_rows = std::max(static_cast<int>(blocks), 1) * plan.block_rows;
  return plan;
}

}  // namespace headwise
