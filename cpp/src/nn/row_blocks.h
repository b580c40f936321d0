// Blocks: rows divided into blocks, a block a task, for the element-wise phases.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headwise {

// Enough rows to outweigh the cost of handing out a task, few enough to share a short sequence among threads.
inline constexpr std::int32_t kRowBlock = 32;

constexpr std::int64_t RowBlocks(std::int64_t rows) { return (rows + kRowBlock - 1) / kRowBlock; }

struct RowRange {
  std::int64_t begin;
  std::int64_t end;
};

constexpr RowRange RowsOfBlock(std::int64_t block, std::int64_t rows) {
  return {block * kRowBlock, std::min(rows, (block + 1) * kRowBlock)};
}

}  // namespace headwise
