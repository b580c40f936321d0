// Cache: sizes of the cells.
#pragma once

#include <cstddef>

#include "headwise/attention.h"

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

}  // namespace headwise
