// Kernel: copies into the order in which GemmTile reads its panels.
//
// Contract: a panel block of `k` rows is k * kPanel contiguous floats; columns past the source are zeros. Sources are
// read only inside their bounds.
#pragma once

#include <cstddef>

#include "kernels/gemm_tile.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct Pack {
  static constexpr int kPanel = GemmTile::kPanel;

  // Rows become columns: `count` rows of `size` floats (row stride `stride`) -> ceil(count / kPanel) panels of
  // size * kPanel floats, element (row, d) at panel[row / kPanel][d][row % kPanel]. For keys.
  static void Transposed(const float* source, std::ptrdiff_t stride, int count, int size, float* panels) {
    for (int row = 0; row < count; row += kPanel, panels += static_cast<std::ptrdiff_t>(size) * kPanel) {
      const int rows = count - row < kPanel ? count - row : kPanel;
      const float* from = source + row * stride;
      float* to = panels;
      int d = 0;
      if (rows == kPanel) {
        for (; d + simd::kLanes <= size; d += simd::kLanes, to += simd::kLanes * kPanel) {
          for (int r = 0; r < kPanel; r += simd::kLanes) TransposeSquare(from + r * stride + d, stride, to + r);
        }
      }
      for (; d < size; ++d, to += kPanel) {
        for (int r = 0; r < kPanel; ++r) to[r] = r < rows ? from[r * stride + d] : 0.0F;
      }
    }
  }

  // Columns stay columns: `count` rows of `size` floats -> ceil(size / kPanel) panels, `panel_stride` floats apart,
  // element (row, c) at panels[c / kPanel * panel_stride + row * kPanel + c % kPanel]. For values. Returns the sum
  // of their squares, which is not finite where one of them is NaN or an infinity (or beyond 1e19).
  static float Columns(const float* source, std::ptrdiff_t stride, int count, int size, float* panels,
                       std::ptrdiff_t panel_stride) {
    simd::Vector squares = simd::Splat(0.0F);
    float tail = 0.0F;
    for (int column = 0; column < size; column += kPanel, panels += panel_stride) {
      const int width = size - column < kPanel ? size - column : kPanel;
      const float* from = source + column;
      float* to = panels;
      for (int row = 0; row < count; ++row, from += stride, to += kPanel) {
        if (width == kPanel) {
          for (int v = 0; v < kPanel; v += simd::kLanes) {
            const simd::Vector x = simd::Load(from + v);
            squares = simd::MulAdd(x, x, squares);
            simd::Store(to + v, x);
          }
        } else {
          for (int c = 0; c < kPanel; ++c) {
            to[c] = c < width ? from[c] : 0.0F;
            tail += to[c] * to[c];
          }
        }
      }
    }
    return simd::Sum(squares) + tail;
  }

  // Replaces NaN and infinities by 0.
  static void Sanitize(float* data, std::ptrdiff_t count) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const float probe = data[i] * 0.0F;
      if (probe != 0.0F || probe != probe) data[i] = 0.0F;
    }
  }

 private:
  static inline void TransposeSquare(const float* from, std::ptrdiff_t stride, float* to) {
    simd::Vector square[simd::kLanes];
    for (int r = 0; r < simd::kLanes; ++r) square[r] = simd::Load(from + r * stride);
    simd::Transpose(square);
    for (int d = 0; d < simd::kLanes; ++d) simd::Store(to + d * kPanel, square[d]);
  }
};

}  // namespace headwise::kernels
