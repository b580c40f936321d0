// Planning (pure): how a product C[m,n] = A[m,k] W[k,n] is cut into tasks, and k into blocks. Depends on the shape and
// the kernel's tile alone.
#pragma once

#include <cstdint>

namespace headwise {

// What the kernel declares: rows that share a panel's loads, columns of a panel.
struct GemmTileShape {
  std::int32_t rows;
  std::int32_t columns;
};

struct GemmPlan {
  std::int32_t row_block;     // rows of a task
  std::int32_t column_block;  // columns of a task, whole panels
  std::int32_t k_block;       // length of a sum that stays in registers
  std::int64_t row_blocks;
  std::int64_t column_blocks;

  std::int64_t tasks() const { return row_blocks * column_blocks; }
};

// Sizes of 0 are welcome: no rows or no columns give no tasks; k = 0 gives tasks with nothing to sum.
GemmPlan PlanGemm(std::int32_t m, std::int32_t n, std::int32_t k, GemmTileShape tile);

// The part of C that task `index` computes; column blocks run fastest, so that neighbours in time share rows of A.
struct GemmBlock {
  std::int32_t row_begin;
  std::int32_t row_end;
  std::int32_t column_begin;
  std::int32_t column_end;
};
GemmBlock BlockOfTask(const GemmPlan& plan, std::int32_t m, std::int32_t n, std::int64_t index);

}  // namespace headwise
