// Attention driver: keys and values as rows of floats: where they lie, or widened from smaller cells.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/call.h"
#include "kernels/read_ahead.h"

namespace headwise {

constexpr std::size_t CellBytes(CellType type) {
  switch (type) {
    case CellType::kFloat16:
      return 2;
    case CellType::kInt8:
      return 1;
    case CellType::kFloat32:
      break;
  }
  return sizeof(float);
}

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

// The same cells, to be read ahead.
kernels::ReadAhead KeysAhead(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key,
                             std::int32_t count);
kernels::ReadAhead ValuesAhead(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key,
                               std::int32_t count);

}  // namespace headwise
