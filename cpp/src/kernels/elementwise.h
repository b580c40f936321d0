// Kernel: rows times or divided by a number.
//
// Contract: any count; source and target are the same or do not overlap.
#pragma once

#include <cmath>
#include <cstddef>

#include "simd/simd.h"

namespace headwise::kernels {

struct Elementwise {
  // target[i] = source[i] * factor.
  static void Scale(const float* source, int count, float factor, float* target) {
    const simd::Vector f = simd::Splat(factor);
    int i = 0;
    for (; i + simd::kLanes <= count; i += simd::kLanes) simd::Store(target + i, simd::Load(source + i) * f);
    for (; i < count; ++i) target[i] = source[i] * factor;
  }

  // target[i] = source[i] / divisor.
  static void Divide(const float* source, int count, float divisor, float* target) {
    const simd::Vector d = simd::Splat(divisor);
    int i = 0;
    for (; i + simd::kLanes <= count; i += simd::kLanes) simd::Store(target + i, simd::Load(source + i) / d);
    for (; i < count; ++i) target[i] = source[i] / divisor;
  }

  // target[r * target_stride + d] = source[r * stride + d] * factor, added to what is there when `add`.
  static void ScaleRows(const float* source, std::ptrdiff_t stride, int rows, int size, float factor, bool add,
                        float* target, std::ptrdiff_t target_stride) {
    const simd::Vector f = simd::Splat(factor);
    for (int row = 0; row < rows; ++row, source += stride, target += target_stride) {
      int i = 0;
      for (; i + simd::kLanes <= size; i += simd::kLanes) {
        const simd::Vector x = simd::Load(source + i) * f;
        simd::Store(target + i, add ? simd::Load(target + i) + x : x);
      }
      for (; i < size; ++i) target[i] = add ? target[i] + source[i] * factor : source[i] * factor;
    }
  }

  // The Euclidean norm of each row, or a little more, to norms where that is given; returns the largest that is a number.
  // Squares that vanish hide nothing: a coordinate below 2^-74 against one whose square is finite makes less than 2^-10.
  static float Norms(const float* source, std::ptrdiff_t stride, int rows, int size, float* norms) {
    float largest = 0.0F;
    for (int row = 0; row < rows; ++row, source += stride) {
      // Two sums: one alone would wait for itself.
      simd::Vector squares[2] = {simd::Splat(0.0F), simd::Splat(0.0F)};
      int i = 0;
      for (; i + 2 * simd::kLanes <= size; i += 2 * simd::kLanes) {
        for (int part = 0; part < 2; ++part) {
          const simd::Vector x = simd::Load(source + i + part * simd::kLanes);
          squares[part] = simd::MulAdd(x, x, squares[part]);
        }
      }
      float sum = simd::Sum(squares[0] + squares[1]);
      for (; i < size; ++i) sum += source[i] * source[i];
      const float norm = std::sqrt(sum) * (1.0F + 0x1p-10F);
      if (norms != nullptr) norms[row] = norm;
      if (norm > largest) largest = norm;
    }
    return largest;
  }
};

}  // namespace headwise::kernels
