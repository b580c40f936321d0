// Kernel: rows times or divided by a number.
//
// Contract: any count; source and target are the same or do not overlap.
#pragma once

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
};

}  // namespace headwise::kernels
