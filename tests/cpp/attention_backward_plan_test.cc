// Tests: the backward pass' plan as plain arithmetic: every pair of chunks once, no two tasks of a phase on the same rows or
// keys, tasks of bounded work.
#include <gtest/gtest.h>

#include <vector>

#include "attention/backward_plan.h"

namespace headwise {
namespace {

constexpr KernelGeometry kGeometry{8, 6, 4};

// 100 ms at 25 GFLOP/s. In practice it is a quarter, but for single tiles of many heads of thousands of numbers.
constexpr double kMostWork = 2.5e9;

std::vector<AttentionShape> Shapes() {
  std::vector<AttentionShape> shapes;
  for (const int l : {1, 64, 97, 1000, 16384, 400000}) {
    for (const int s : {1, 63, 1024, 100000, 400000, 4000000}) {
      for (const int d : {1, 64, 512, 8192}) {
        for (const int group : {1, 8}) shapes.push_back({1, 2 * group, 2, l, s, d, d + 1});
      }
    }
  }
  return shapes;
}

TEST(AttentionBackwardPlan, CoversEveryPairOnceAndSharesNothingWithinAPhase) {
  for (const AttentionShape& s : Shapes()) {
    const AttentionBackwardPlan p = PlanAttentionBackward(s, kGeometry);
    SCOPED_TRACE(::testing::Message() << "L" << s.queries << " S" << s.keys << " D" << s.head_dim << " H" << s.heads);
    ASSERT_GE(std::int64_t{p.row_chunks} * p.chunk_rows, s.queries);
    ASSERT_GE(std::int64_t{p.key_chunks} * p.chunk_keys, s.keys);
    ASSERT_LT(std::int64_t{p.row_chunks - 1} * p.chunk_rows, s.queries);
    ASSERT_LT(std::int64_t{p.key_chunks - 1} * p.chunk_keys, s.keys);
    ASSERT_EQ(p.chunk_rows % p.block_rows, 0);
    ASSERT_EQ(p.chunk_keys % p.block_keys, 0);
    ASSERT_EQ(p.part_keys % p.block_keys, 0);
    ASSERT_EQ(p.delta_rows % p.block_rows, 0);
    if (std::int64_t{p.row_chunks} * p.key_chunks > 20000) continue;
    std::vector<int> pairs(static_cast<std::size_t>(p.row_chunks * p.key_chunks), 0);
    std::vector<bool> rows_met(static_cast<std::size_t>(p.row_chunks), false);
    std::vector<bool> keys_met(static_cast<std::size_t>(p.key_chunks), false);
    for (int phase = 0; phase < p.phases(); ++phase) {
      std::vector<bool> rows_used(static_cast<std::size_t>(p.row_chunks), false);
      std::vector<bool> keys_used(static_cast<std::size_t>(p.key_chunks), false);
      for (int task = 0; task < p.tasks(); ++task) {
        const auto chunks = p.ChunksOf(phase, task);
        const auto r = static_cast<std::size_t>(chunks.rows);
        const auto k = static_cast<std::size_t>(chunks.keys);
        ASSERT_LT(chunks.rows, p.row_chunks);
        ASSERT_LT(chunks.keys, p.key_chunks);
        ++pairs[r * static_cast<std::size_t>(p.key_chunks) + k];
        ASSERT_FALSE(rows_used[r] || keys_used[k]) << "phase " << phase << ", task " << task;
        ASSERT_EQ(chunks.first_of_rows, !rows_met[r]) << "phase " << phase << ", task " << task;
        ASSERT_EQ(chunks.first_of_keys, !keys_met[k]) << "phase " << phase << ", task " << task;
        rows_used[r] = keys_used[k] = rows_met[r] = keys_met[k] = true;
      }
    }
    for (const int count : pairs) ASSERT_EQ(count, 1);
  }
}

TEST(AttentionBackwardPlan, TasksAreOfBoundedWork) {
  for (const AttentionShape& s : Shapes()) {
    const AttentionBackwardPlan p = PlanAttentionBackward(s, kGeometry);
    const double size = double(s.head_dim) + s.value_dim;
    const double group = double(s.heads) / s.kv_heads;
    EXPECT_LE(5.0 * group * size * std::min(p.chunk_rows, s.queries) * std::min(p.chunk_keys, s.keys), kMostWork)
        << "L" << s.queries << " S" << s.keys << " D" << s.head_dim << " H" << s.heads;
    EXPECT_LE(2.0 * p.delta_rows * s.value_dim, kMostWork / 10);
    const AttentionPlan sums = PlanRowSums({s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.head_dim, 0}, kGeometry);
    EXPECT_LE(sums.block_rows, kMostSumRows);
    // Whatever has its keys, values and their gradients in 4 GB.
    if (4.0 * s.kv_heads * s.keys * 2 * size > 4e9) continue;
    EXPECT_LE(2.0 * sums.block_rows * s.keys * s.head_dim, kMostWork) << "L" << s.queries << " S" << s.keys;
  }
}

// Without keys rows still get their zeros, a few milliseconds of them a task.
TEST(AttentionBackwardPlan, RowsWithoutKeysAreManyTasks) {
  const AttentionBackwardPlan p = PlanAttentionBackward({1, 1, 1, 1 << 24, 0, 64, 64}, kGeometry);
  EXPECT_LE(std::int64_t{p.chunk_rows} * 64, std::int64_t{1} << 24);
}

}  // namespace
}  // namespace headwise
