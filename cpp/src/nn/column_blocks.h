// Blocks: columns divided into blocks, a block a task, for sums over all rows: one task holds a sum, whatever the threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headwise {

inline constexpr std::int32_t kColumnBlock = 32;  // two cache lines of every row

constexpr std::int64_t ColumnBlocks(std::int64_t width) { return (width + kColumnBlock - 1) / kColumnBlock; }

struct ColumnRange {
  std::int32_t begin;
  std::int32_t end;
};

constexpr ColumnRange ColumnsOfBlock(std::int64_t block, std::int32_t width) {
  const auto begin = static_cast<std::int32_t>(block * kColumnBlock);
  return {begin, std::min(width, begin + kColumnBlock)};
}

// Sums of a block into `target` [width] or added to it; null: not wanted.
inline void StoreColumns(ColumnRange columns, const double* sums, bool accumulate, float* target) {
  if (target == nullptr) return;
  for (std::int32_t c = columns.begin; c < columns.end; ++c) {
    const double sum = sums[c - columns.begin];
    target[c] = static_cast<float>(accumulate ? target[c] + sum : sum);
  }
}

}  // namespace headwise
