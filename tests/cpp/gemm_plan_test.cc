// Tests: the cutting of a product into tasks. No kernel runs here.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gemm/plan.h"

namespace headwise {
namespace {

constexpr GemmTileShape kTile = {6, 8};

TEST(GemmPlan, BlocksCoverTheResultOnce) {
  for (const std::int32_t m : {0, 1, 5, 6, 7, 48, 49, 97, 200}) {
    for (const std::int32_t n : {0, 1, 7, 8, 9, 64, 129}) {
      for (const std::int32_t k : {0, 1, 100, 5000, 3000000}) {
        const GemmPlan plan = PlanGemm(m, n, k, kTile);
        std::vector<int> covered(static_cast<std::size_t>(m) * n, 0);
        for (std::int64_t task = 0; task < plan.tasks(); ++task) {
          const GemmBlock block = BlockOfTask(plan, m, n, task);
          EXPECT_LT(block.row_begin, block.row_end);
          EXPECT_LT(block.column_begin, block.column_end);
          EXPECT_EQ(block.column_begin % kTile.columns, 0);
          for (std::int32_t row = block.row_begin; row < block.row_end; ++row) {
            for (std::int32_t column = block.column_begin; column < block.column_end; ++column) {
              ++covered[static_cast<std::size_t>(row) * n + column];
            }
          }
        }
        for (const int times : covered) ASSERT_EQ(times, 1) << m << " x " << n << " x " << k;
      }
    }
  }
}

TEST(GemmPlan, APanelBlockFitsTheFirstLevelCache) {
  for (const std::int32_t columns : {8, 16, 32}) {
    const GemmPlan plan = PlanGemm(512, 512, 4096, {6, columns});
    EXPECT_LE(plan.k_block * columns * 4, 16384);
    EXPECT_GE(plan.k_block, 64);
  }
}

TEST(GemmPlan, TasksAreManyEnoughForThreadsAndFewEnoughForTheirCost) {
  const GemmPlan layer = PlanGemm(1024, 512, 512, kTile);
  EXPECT_GE(layer.tasks(), 64);
  const GemmPlan one_row = PlanGemm(1, 4096, 4096, kTile);
  EXPECT_GE(one_row.tasks(), 8);
  EXPECT_EQ(PlanGemm(4, 4, 3, kTile).tasks(), 1);
}

TEST(GemmPlan, TheLargestSizesStayInRange) {
  constexpr std::int32_t kMax = 2147483647;
  const GemmPlan plan = PlanGemm(kMax, kMax, kMax, kTile);
  const GemmBlock last = BlockOfTask(plan, kMax, kMax, plan.tasks() - 1);
  EXPECT_EQ(last.row_end, kMax);
  EXPECT_EQ(last.column_end, kMax);
}

}  // namespace
}  // namespace headwise
