// Kernel: turns a finished row of scores into softmax weights, in place: s[i] <- exp(s[i] - max) * factor.
//
// Contract: any count; nothing past it is touched. Hidden scores (-infinity) give exactly 0. Units as in SoftmaxTile.
#pragma once

#include <cstddef>

#include "kernels/exp2.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct WeightsRow {
  using V = simd::Vector;

  template <bool kLog2Units>
  static void Run(float* s, std::ptrdiff_t count, float max, float factor) {
    const Exp2 exp2(kExp2Constants);
    const V shift = simd::Splat(max);
    const V scale = simd::Splat(factor);
    std::ptrdiff_t i = 0;
    for (; i + simd::kLanes <= count; i += simd::kLanes) {
      simd::Store(s + i, exp2.Of<kLog2Units>(simd::Load(s + i) - shift) * scale);
    }
    if (i < count) {
      alignas(64) float lanes[simd::kLanes] = {};
      for (std::ptrdiff_t n = i; n < count; ++n) lanes[n - i] = s[n];
      simd::Store(lanes, exp2.Of<kLog2Units>(simd::Load(lanes) - shift) * scale);
      for (std::ptrdiff_t n = i; n < count; ++n) s[n] = lanes[n - i];
    }
  }
};

}  // namespace headwise::kernels
