// Kernel: one step of the online softmax over a tile of scores, in place.
//
// Contract: `s` has `rows` rows of `width` scores (a multiple of kLanes) with row stride `ld`; hidden ones are
// -infinity. The state of row r is its running maximum max[r], which starts at kLowestScore, and kLanes partial sums at
// sums + r * kLanes, which start at 0. On return s holds exp(score - max), the state includes the tile, and rescale[r]
// is the factor by which what was accumulated under the old maximum is to be multiplied. Returns whether any factor
// differs from 1. Scores are in units of ln 2 when kLog2Units, else natural.
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/exp2.h"
#include "simd/simd.h"

namespace headwise::kernels {

// The running maximum starts here, not at -infinity, so that -infinity minus -infinity is never formed.
inline constexpr float kLowestScore = std::numeric_limits<float>::lowest();

struct SoftmaxTile {
  using V = simd::Vector;

  template <bool kLog2Units>
  static bool Run(int rows, int width, float* s, std::ptrdiff_t ld, float* max, float* sums, float* rescale) {
    const Exp2 exp2(kExp2Constants);
    const V log2e = simd::Splat(kLog2e);
    bool rescaled = false;
    for (int r = 0; r < rows; ++r, s += ld, sums += simd::kLanes) {
      const float old_max = max[r];
      V top = simd::Splat(old_max);
      V top2 = top;
      int i = 0;
      for (; i + 2 * simd::kLanes <= width; i += 2 * simd::kLanes) {
        top = simd::MaxKeepFirst(top, simd::Load(s + i));
        top2 = simd::MaxKeepFirst(top2, simd::Load(s + i + simd::kLanes));
      }
      for (; i < width; i += simd::kLanes) top = simd::MaxKeepFirst(top, simd::Load(s + i));
      const float new_max = simd::MaxLane(simd::MaxKeepFirst(top, top2));
      const V shift = simd::Splat(new_max);
      V sum = simd::Load(sums);
      rescale[r] = 1.0F;
      if (new_max != old_max) {
        const V difference = simd::Splat(old_max) - shift;
        const V factor = exp2(kLog2Units ? difference : difference * log2e);
        sum = sum * factor;
        rescale[r] = simd::FirstLane(factor);
        max[r] = new_max;
        rescaled = true;
      }
      for (i = 0; i + 2 * simd::kLanes <= width; i += 2 * simd::kLanes) {
        sum = sum + Exponentiate<kLog2Units>(exp2, s + i, shift, log2e);
        sum = sum + Exponentiate<kLog2Units>(exp2, s + i + simd::kLanes, shift, log2e);
      }
      for (; i < width; i += simd::kLanes) sum = sum + Exponentiate<kLog2Units>(exp2, s + i, shift, log2e);
      simd::Store(sums, sum);
    }
    return rescaled;
  }

  template <bool kLog2Units>
  [[gnu::always_inline]] static inline V Exponentiate(const Exp2& exp2, float* s, V shift, V log2e) {
    const V x = simd::Load(s) - shift;
    const V p = exp2(kLog2Units ? x : x * log2e);
    simd::Store(s, p);
    return p;
  }

  static constexpr float kLog2e = 1.44269504088896340736F;
};

}  // namespace headwise::kernels
