// Blocks: a flat array divided into blocks, a block a task.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headwise {

inline constexpr std::int64_t kElementBlock = 8192;  // 32 KiB of one array

constexpr std::int64_t ElementBlocks(std::int64_t count) { return (count + kElementBlock - 1) / kElementBlock; }

struct ElementRange {
  std::int64_t begin;
  std::int64_t end;
};

constexpr ElementRange ElementsOfBlock(std::int64_t block, std::int64_t count) {
  return {block * kElementBlock, std::min(count, (block + 1) * kElementBlock)};
}

}  // namespace headwise
