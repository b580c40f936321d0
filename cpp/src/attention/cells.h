// Attention driver: keys and values as rows of floats: where they lie, or widened from smaller cells.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/call.h"

namespace headwise {

struct FloatRows {
  const float* data;
  std::ptrdiff_t stride;
};

// Keys (values) key ... key + count - 1 of a key/value head. Those that are no floats are widened into `wide`, a row of
// head_dim (value_dim) after the other.
FloatRows KeyRows(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key, std::int32_t count,
                  float* wide);
FloatRows ValueRows(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key, std::int32_t count,
                    float* wide);

}  // namespace headwise
