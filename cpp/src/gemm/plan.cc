// Planning (pure): cuts a product into tasks.
#include "gemm/plan.h"

#include <algorithm>

namespace headwise {
namespace {

// A panel's block of k rows and the rows of A beside it are to stay in a first-level cache of 32 KiB.
constexpr std::int64_t kPanelBlockBytes = 12288;

// Tiles of rows in a task: eight of them pay for one pass over a panel block, and their rows of A stay in the second
// level.
constexpr std::int64_t kRowTiles = 8;

// Multiply-adds of a task: some tens of microseconds, far above the cost of handing it out and far below a slice.
constexpr std::int64_t kTaskWork = std::int64_t{1} << 20;

constexpr std::int64_t Ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// `total` in the fewest equal parts of at most `limit`, each a multiple of `unit`.
std::int64_t EvenPart(std::int64_t total, std::int64_t limit, std::int64_t unit) {
  if (total <= 0) return unit;
  const std::int64_t parts = Ceil(total, limit);
  return Ceil(Ceil(total, parts), unit) * unit;
}

}  // namespace

GemmPlan PlanGemm(std::int32_t m, std::int32_t n, std::int32_t k, GemmTileShape tile) {
  const std::int64_t row_block = EvenPart(m, kRowTiles * tile.rows, tile.rows);
  const std::int64_t k_limit = std::max<std::int64_t>(
      1, kPanelBlockBytes / (std::int64_t{tile.columns} * static_cast<std::int64_t>(sizeof(float))));
  const std::int64_t k_block = EvenPart(k, k_limit, 1);
  const std::int64_t rows = std::max<std::int64_t>(1, std::min<std::int64_t>(m, row_block));
  const std::int64_t columns = kTaskWork / (rows * std::max<std::int64_t>(1, k));
  const std::int64_t column_limit = std::max<std::int64_t>(1, columns / tile.columns) * tile.columns;
  const std::int64_t column_block = EvenPart(n, column_limit, tile.columns);

  GemmPlan plan;
  plan.row_block = static_cast<std::int32_t>(row_block);
  plan.column_block = static_cast<std::int32_t>(column_block);
  plan.k_block = static_cast<std::int32_t>(k_block);
  plan.row_blocks = Ceil(m, row_block);
  plan.column_blocks = Ceil(n, column_block);
  return plan;
}

GemmBlock BlockOfTask(const GemmPlan& plan, std::int32_t m, std::int32_t n, std::int64_t index) {
  const std::int64_t row = index / plan.column_blocks * plan.row_block;
  const std::int64_t column = index % plan.column_blocks * plan.column_block;
  GemmBlock block;
  block.row_begin = static_cast<std::int32_t>(row);
  block.row_end = static_cast<std::int32_t>(std::min<std::int64_t>(m, row + plan.row_block));
  block.column_begin = static_cast<std::int32_t>(column);
  block.column_end = static_cast<std::int32_t>(std::min<std::int64_t>(n, column + plan.column_block));
  return block;
}

}  // namespace headwise
