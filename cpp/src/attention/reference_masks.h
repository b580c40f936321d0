// Attention: the oracles' plain reading of the masks, one element at a time.
#pragma once

#include <cstdint>

#include "headwise/attention.h"

namespace headwise {

// What the boolean mask says of key j for query i; true without one.
inline bool MaskShows(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  if (a.mask == nullptr) return true;
  const BroadcastStrides& s = a.mask_strides;
  const std::int64_t row = std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
  if (a.mask_bits == 0) return a.mask[row + std::int64_t{j} * s.column] != 0;
  const std::int32_t bit = s.column == 0 ? 0 : j;
  return (a.mask[row + bit / 8] >> (bit % 8) & 1) != 0;
}

// Whether the block mask lists the block of key j for that of query i; true without one.
inline bool BlockMaskShows(const AttentionArgs& a, std::int32_t i, std::int32_t j) {
  if (a.block_size == 0) return true;
  const std::int32_t row = i / a.block_size;
  for (std::int32_t n = a.block_rows[row]; n < a.block_rows[row + 1]; ++n) {
    if (a.block_columns[n] == j / a.block_size) return true;
  }
  return false;
}

}  // namespace headwise
