// Tests: the plan as plain arithmetic, without running a kernel.
#include <gtest/gtest.h>

#include "attention/plan.h"

namespace headwise {
namespace {

constexpr KernelGeometry kGeometry{8, 4, 4};

void ExpectCovers(const AttentionShape& s) {
  const AttentionPlan p = PlanAttention(s, kGeometry);
  const auto at = [&](const char* what) {
    return ::testing::Message() << what << " of B" << s.batch << " H" << s.heads << " G" << s.kv_heads << " L"
                                << s.queries << " S" << s.keys << " D" << s.head_dim << " Dv" << s.value_dim;
  };
  EXPECT_GT(p.block_keys, 0) << at("block_keys");
  EXPECT_EQ(p.block_keys % kGeometry.panel, 0) << at("block_keys");
  EXPECT_EQ(p.chunk_keys % p.block_keys, 0) << at("chunk_keys");
  EXPECT_EQ(p.split_keys % p.block_keys, 0) << at("split_keys");
  EXPECT_EQ(p.padded_dim % kGeometry.panel, 0) << at("padded_dim");
  EXPECT_GE(p.padded_dim, s.value_dim) << at("padded_dim");
  if (p.direct) {
    EXPECT_GE(static_cast<std::int64_t>(p.splits) * p.split_keys, s.keys) << at("splits");
    EXPECT_LT(static_cast<std::int64_t>(p.splits - 1) * p.split_keys, std::max(s.keys, 1)) << at("an empty split");
  } else {
    EXPECT_GE(static_cast<std::int64_t>(p.row_tasks) * p.block_rows, s.queries) << at("row_tasks");
    EXPECT_LT(static_cast<std::int64_t>(p.row_tasks - 1) * p.block_rows, s.queries) << at("an empty task");
    EXPECT_GE(static_cast<std::int64_t>(p.chunks) * p.chunk_keys, s.keys) << at("chunks");
    EXPECT_LT(static_cast<std::int64_t>(p.chunks - 1) * p.chunk_keys, std::max(s.keys, 1)) << at("an empty chunk");
  }
}

TEST(AttentionPlan, CoversEveryShape) {
  for (const int l : {1, 2, 7, 8, 9, 63, 64, 65, 128, 1000, 16384}) {
    for (const int s : {1, 7, 8, 63, 64, 65, 1000, 16384, 1000003}) {
      for (const int d : {1, 3, 64, 65, 128, 8192}) {
        for (const int group : {1, 4}) ExpectCovers({2, 2 * group, 2, l, s, d, d + 1});
      }
    }
  }
}

TEST(AttentionPlan, EmptyShapesHaveNoTasks) {
  EXPECT_EQ(PlanAttention({0, 4, 4, 8, 8, 4, 4}, kGeometry).tasks, 0);
  EXPECT_EQ(PlanAttention({2, 0, 0, 8, 8, 4, 4}, kGeometry).tasks, 0);
  EXPECT_EQ(PlanAttention({2, 4, 4, 0, 8, 4, 4}, kGeometry).tasks, 0);
  // Without keys there are still rows to fill with zeros.
  EXPECT_GT(PlanAttention({2, 4, 4, 8, 0, 4, 4}, kGeometry).tasks, 0);
  ExpectCovers({2, 4, 4, 8, 0, 4, 4});
}

TEST(AttentionPlan, DecodingReadsKeysOnceAndSplitsThem) {
  const AttentionPlan p = PlanAttention({1, 32, 8, 1, 16384, 128, 128}, kGeometry);
  EXPECT_TRUE(p.direct);
  EXPECT_EQ(p.block_rows, 4);
  EXPECT_GE(p.tasks, 32);
}

TEST(AttentionPlan, ManyTasksForManyThreads) {
  EXPECT_GE(PlanAttention({1, 8, 8, 1024, 1024, 64, 64}, kGeometry).tasks, 16);
  EXPECT_GE(PlanAttention({1, 1, 1, 512, 512, 64, 64}, kGeometry).tasks, 16);
}

// 100 ms at 20 GFLOP/s.
TEST(AttentionPlan, TasksAreOfBoundedWork) {
  for (const int l : {1, 8, 9, 64, 1024, 100000}) {
    for (const int s : {1, 1000, 20000, 100000, 400000, 4000000}) {
      for (const int d : {1, 64, 512, 8192, 1 << 18}) {
        for (const int group : {1, 8}) {
          // What has its keys and values in 4 GB.
          if (4.0 * s * 2.0 * d > 4e9) continue;
          const AttentionPlan p = PlanAttention({1, group, 1, l, s, d, d}, kGeometry);
          const double rows = p.direct ? p.block_rows : std::min(p.block_rows, l);
          const double keys = std::min(p.direct ? p.split_keys : p.chunk_keys, s);
          EXPECT_LE(4.0 * rows * keys * d, 2e9) << "L" << l << " S" << s << " D" << d << " group " << group;
        }
      }
    }
  }
}

}  // namespace
}  // namespace headwise
