// Blocks: rows divided into blocks, a block a task, for the element-wise phases.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headwise {

// Enough rows to outweigh the cost of handing out a task, few enough to share a short sequence among threads; and of wide rows
// no more than some milliseconds' numbers.
inline constexpr std::int64_t kRowBlock = 32;
inline constexpr std::int64_t kBlockNumbers = std::int64_t{1} << 18;

// `numbers`: what a row has to be computed, in all.
constexpr std::int64_t RowBlock(std::int64_t numbers) {
  return std::clamp<std::int64_t>(kBlockNumbers / std::max<std::int64_t>(numbers, 1), 1, kRowBlock);
}
constexpr std::int64_t RowBlocks(std::int64_t rows, std::int64_t numbers) {
  return (rows + RowBlock(numbers) - 1) / RowBlock(numbers);
}

struct RowRange {
  std::int64_t begin;
  std::int64_t end;
};

constexpr RowRange RowsOfBlock(std::int64_t block, std::int64_t rows, std::int64_t numbers) {
  return {block * RowBlock(numbers), std::min(rows, (block + 1) * RowBlock(numbers))};
}

}  // namespace headwise
