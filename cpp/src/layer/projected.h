// Layer: a projection's result, the tensor that the products write and attention reads.
#pragma once

#include <cstdint>
#include <limits>

#include "headwise/attention.h"
#include "memory/aligned.h"

namespace headwise {

// A tensor [batch, rows, heads, size] in the call's own memory.
struct Projected {
  std::int32_t batch = 0;
  std::int32_t rows = 0;
  std::int32_t heads = 0;
  std::int32_t size = 0;
  float* data = nullptr;

  std::int64_t vectors() const { return std::int64_t{batch} * rows * heads; }
  std::uint64_t elements() const {
    return CheckedMul(static_cast<std::uint64_t>(vectors()), static_cast<std::uint64_t>(size));
  }
  Strides strides() const { return {rows * heads * size, size, heads * size}; }
  // Are batch * rows and the strides counted in 32 bits?
  bool Countable() const {
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    return std::int64_t{batch} * rows <= kMax &&
           (rows == 0 || std::int64_t{heads} * size <= kMax / rows);  // heads * size was checked with the configuration
  }
};

}  // namespace headwise
