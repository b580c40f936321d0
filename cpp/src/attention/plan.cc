// Plan: see plan.h.
#include "attention/plan.h"

#include <algorithm>

namespace headwise {
namespace {

// Keys of a block: the longer, the less often a row's maximum, sums and accumulators are visited. Rows of a block: their
// queries and scores (45 KiB at D = 64) stay in the second-level cache while one panel after the other passes.
// Tried without a difference beyond the noise of 2 %, best of many short calls at D = 64 and 128: blocks of 36 to 120 rows and
// 64 to 256 keys; a score stride that is no power of two; four blocks of rows over keys and values that fit the second level.
constexpr int kBlockKeys = 128;
constexpr int kBlockRows = 60;

// Up to this many rows a key/value head, packing costs more than the packed kernels save.
constexpr int kDirectRows = 8;

// One thread packs one head's keys and values as far as they fit here (131072 keys at D = Dv = 64). A longer head is taken
// chunk by chunk: all rows go through one before the next is packed, as many at once as keep their states in kStateBytes.
constexpr std::int64_t kChunkBytes = 64 << 20;
constexpr std::int64_t kStateBytes = 8 << 20;
constexpr int kStateFloats = 3;  // of a row, beside its accumulators and sums

// A task is one block of rows, short for the sake of AbortSignal and of the balance between threads; what a thread has
// packed of a head it keeps from task to task.
constexpr double kMostTaskFlops = 1.5e9;  // 40 ms at 40 GFLOP/s: beyond it, smaller blocks

constexpr int kEnoughTasks = 16;  // below it, smaller tiles for the sake of the threads
constexpr int kLeastSplitKeys = 1024;
constexpr int kDirectTasks = 64;

// Where heads are so large that a whole block of keys is much work, blocks are shorter.
constexpr std::int64_t kBlockNumbers = std::int64_t{1} << 21;

constexpr int kSumChunkKeys = 2048;                           // keys packed at a time for the sums alone
constexpr std::int64_t kFillNumbers = std::int64_t{1} << 20;  // a millisecond
constexpr int kFillOverhead = 16;                             // what a row costs beside its numbers, in numbers

constexpr int RoundUp(std::int64_t n, int to) { return static_cast<int>((n + to - 1) / to * to); }
constexpr std::int64_t CeilDiv(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

}  // namespace

std::int64_t RowsToFill(std::int32_t size) {
  return std::max<std::int64_t>(kFillNumbers / (std::int64_t{size} + kFillOverhead), 1);
}

AttentionPlan PlanRowSums(const AttentionShape& s, const KernelGeometry& kernels) {
  AttentionPlan plan{};
  plan.block_keys = RoundUp(std::clamp(s.keys, 1, kBlockKeys), kernels.panel);
  plan.block_rows = RoundUp(std::clamp(s.queries, 1, kBlockRows), kernels.row_tile);
  const double row_flops = 2.0 * std::max(s.keys, 1) * double(s.head_dim);
  while (row_flops * plan.block_rows > kMostTaskFlops && plan.block_rows > kernels.row_tile) {
    plan.block_rows = RoundUp(plan.block_rows / 2, kernels.row_tile);
  }
  plan.row_tasks = static_cast<int>(CeilDiv(s.queries, plan.block_rows));
  plan.chunk_keys = RoundUp(std::clamp(s.keys, 1, kSumChunkKeys), plan.block_keys);
  plan.chunks = static_cast<int>(CeilDiv(std::max(s.keys, 1), plan.chunk_keys));
  plan.splits = 1;
  plan.split_keys = plan.chunk_keys;
  plan.tasks = std::int64_t{s.batch} * s.heads * plan.row_tasks;
  return plan;
}

AttentionPlan PlanAttention(const AttentionShape& s, const KernelGeometry& kernels) {
  AttentionPlan plan{};
  plan.padded_dim = RoundUp(s.value_dim, kernels.panel);
  const std::int64_t size = std::max<std::int64_t>(std::int64_t{s.head_dim} + s.value_dim, 1);
  const auto most_keys = static_cast<int>(std::clamp<std::int64_t>(kBlockNumbers / size, 1, kBlockKeys));
  plan.block_keys = RoundUp(std::clamp(s.keys, 1, most_keys), kernels.panel);
  const std::int64_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  const std::int64_t group_rows = group * s.queries;
  const std::int64_t kv_heads = std::int64_t{s.batch} * s.kv_heads;
  plan.direct = group_rows <= kDirectRows;

  if (plan.direct) {
    plan.block_rows = static_cast<int>(std::max<std::int64_t>(group_rows, 1));
    plan.row_tasks = 1;
    plan.chunks = 1;
    const std::int64_t wanted = CeilDiv(kDirectTasks, std::max<std::int64_t>(kv_heads, 1));
    const std::int64_t least = std::min<std::int64_t>(kLeastSplitKeys, std::int64_t{8} * plan.block_keys);
    plan.splits = static_cast<int>(std::clamp<std::int64_t>(s.keys / least, 1, wanted));
    plan.split_keys = RoundUp(CeilDiv(std::max(s.keys, 1), plan.splits), plan.block_keys);
    plan.splits = static_cast<int>(CeilDiv(std::max(s.keys, 1), plan.split_keys));
    plan.chunk_keys = plan.split_keys;
    plan.tasks = group_rows > 0 ? kv_heads * plan.splits : 0;
    return plan;
  }

  const std::int64_t heads = std::int64_t{s.batch} * s.heads;
  // Whole row tiles, and blocks as even as these allow.
  const std::int64_t row_blocks = std::max<std::int64_t>(CeilDiv(s.queries, kBlockRows), 1);
  int block_rows = RoundUp(CeilDiv(s.queries, row_blocks), kernels.row_tile);
  while (heads * CeilDiv(s.queries, block_rows) < kEnoughTasks && block_rows > 2 * kernels.row_tile) {
    block_rows = RoundUp(block_rows / 2, kernels.row_tile);
  }
  plan.block_rows = block_rows;

  const std::int64_t key_bytes = std::int64_t{4} * (std::int64_t{s.head_dim} + plan.padded_dim);
  const std::int64_t fitting = std::max<std::int64_t>(kChunkBytes / std::max<std::int64_t>(key_bytes, 1), 1);
  const std::int64_t keys = std::max(s.keys, 1);
  plan.chunk_keys = fitting >= keys ? RoundUp(keys, plan.block_keys)
                                    : std::max<int>(static_cast<int>(fitting / plan.block_keys), 1) * plan.block_keys;
  plan.chunks = static_cast<int>(CeilDiv(keys, plan.chunk_keys));

  const double row_flops = 2.0 * double(std::min<std::int64_t>(keys, plan.chunk_keys)) * double(size);
  while (row_flops * plan.block_rows > kMostTaskFlops && plan.block_rows > kernels.row_tile) {
    plan.block_rows = RoundUp(plan.block_rows / 2, kernels.row_tile);
  }
  plan.row_tasks = static_cast<int>(CeilDiv(s.queries, plan.block_rows));
  const std::int64_t state_bytes = std::int64_t{4} * plan.block_rows * (plan.padded_dim + kernels.lanes + kStateFloats);
  plan.round_tasks = static_cast<int>(std::max<std::int64_t>(kStateBytes / state_bytes, kEnoughTasks));
  plan.splits = 1;
  plan.split_keys = plan.chunk_keys;
  plan.tasks = heads * plan.row_tasks;
  return plan;
}

}  // namespace headwise
