// Kernel: rows become columns and back, for the products of the backward pass whose left side is a transposed block.
//
// Contract: nothing outside the named elements is read or written.
#pragma once

#include <cstddef>

#include "kernels/gemm_tile.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct Transpose {
  static constexpr int kPanel = GemmTile::kPanel;

  // target[d * target_stride + row] = source[row * stride + d] for `rows` rows of `size`. Returns whether a NaN or an
  // infinity was among them.
  static bool Rows(const float* source, std::ptrdiff_t stride, int rows, int size, float* target,
                   std::ptrdiff_t target_stride) {
    simd::Vector poison = simd::Splat(0.0F);  // x * 0 is NaN for NaN and infinities alone
    float poison_tail = 0.0F;
    for (int row = 0; row < rows; row += simd::kLanes) {
      const int count = rows - row < simd::kLanes ? rows - row : simd::kLanes;
      int d = 0;
      for (; count == simd::kLanes && d + simd::kLanes <= size; d += simd::kLanes) {
        simd::Vector square[simd::kLanes];
        for (int r = 0; r < simd::kLanes; ++r) {
          square[r] = simd::Load(source + (row + r) * stride + d);
          poison = simd::MulAdd(square[r], simd::Splat(0.0F), poison);
        }
        simd::Transpose(square);
        for (int c = 0; c < simd::kLanes; ++c) simd::Store(target + (d + c) * target_stride + row, square[c]);
      }
      for (; d < size; ++d) {
        for (int r = 0; r < count; ++r) {
          const float x = source[(row + r) * stride + d];
          poison_tail += x * 0.0F;
          target[d * target_stride + row + r] = x;
        }
      }
    }
    const float sum = simd::Sum(poison) + poison_tail;
    return sum != 0.0F || sum != sum;
  }

  // The way back from panels [row / kPanel][d][row % kPanel]: target[row * stride + d] = panel * factor, added to what is
  // there when `add`.
  static void FromPanels(const float* panels, int rows, int size, float factor, bool add, float* target,
                         std::ptrdiff_t stride) {
    const simd::Vector f = simd::Splat(factor);
    for (int row = 0; row < rows; row += kPanel, panels += static_cast<std::ptrdiff_t>(size) * kPanel) {
      const int count = rows - row < kPanel ? rows - row : kPanel;
      float* to = target + row * stride;
      int d = 0;
      for (; count == kPanel && d + simd::kLanes <= size; d += simd::kLanes) {
        for (int part = 0; part < kPanel; part += simd::kLanes) {
          simd::Vector square[simd::kLanes];
          for (int c = 0; c < simd::kLanes; ++c) square[c] = simd::Load(panels + (d + c) * kPanel + part) * f;
          simd::Transpose(square);
          for (int r = 0; r < simd::kLanes; ++r) {
            float* place = to + (part + r) * stride + d;
            simd::Store(place, add ? simd::Load(place) + square[r] : square[r]);
          }
        }
      }
      for (; d < size; ++d) {
        for (int r = 0; r < count; ++r) {
          float& place = to[r * stride + d];
          const float value = panels[d * kPanel + r] * factor;
          place = add ? place + value : value;
        }
      }
    }
  }
};

}  // namespace headwise::kernels
