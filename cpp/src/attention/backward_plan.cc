// Plan: see backward_plan.h.
#include "attention/backward_plan.h"

#include <algorithm>

namespace headwise {
namespace {

// A multiple of the row tiles (6 and 4) and of the kernel's eight steps, since rows are also the depth of dV^T = dO^T P.
// Scores, dO V^T and gradients of a tile (3 x 24 KiB) stay in the second-level cache.
constexpr int kBlockRows = 96;

constexpr int kPartKeys = 2048;     // 2.6 MB a thread at D = Dv = 64
constexpr int kEnoughTasks = 16;    // below it, more chunks for the sake of the threads
constexpr double kTaskFlops = 1e9;  // about 30 ms: a task is what AbortSignal waits for

constexpr int RoundUp(std::int64_t n, int to) { return static_cast<int>((n + to - 1) / to * to); }
constexpr std::int64_t CeilDiv(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

}  // namespace

AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& s, const KernelGeometry& kernels) {
  AttentionBackwardPlan plan{};
  plan.padded_dim = RoundUp(s.head_dim, kernels.panel);
  plan.block_rows = std::min(RoundUp(std::max(s.queries, 1), kernels.row_tile), RoundUp(kBlockRows, kernels.row_tile));
  plan.block_keys = RoundUp(std::clamp(s.keys, 1, kMostBackwardKeys), kernels.panel);
  const std::int64_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  const std::int64_t units = std::int64_t{s.batch} * s.kv_heads;
  const double flops = 5.0 * static_cast<double>(group) * s.queries * s.keys * (double(s.head_dim) + s.value_dim);
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min(CeilDiv(s.queries, plan.block_rows), CeilDiv(s.keys, plan.block_keys)));
  plan.chunks = 1;
  while (plan.chunks < most &&
         (units * plan.chunks < kEnoughTasks || flops / (double(plan.chunks) * plan.chunks) > kTaskFlops)) {
    ++plan.chunks;
  }
  plan.chunk_rows = RoundUp(CeilDiv(std::max(s.queries, 1), plan.chunks), plan.block_rows);
  plan.chunk_keys = RoundUp(CeilDiv(std::max(s.keys, 1), plan.chunks), plan.block_keys);
  plan.part_keys = std::min(plan.chunk_keys, std::max(kPartKeys / plan.block_keys, 1) * plan.block_keys);
  return plan;
}

}  // namespace headwise
