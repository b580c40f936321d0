// Kernel: one step of the online softmax over a tile of scores, in place.
//
// Contract: `s` has `rows` rows of `width` scores (a multiple of kLanes) with row stride `ld`; hidden ones are
// -infinity. The state of row r is max[r], which starts at kLowestScore and is the largest score so far (rounded up to a
// whole number when kLog2Units), and kLanes partial sums at sums + r * kLanes, which start at 0. On return s holds
// exp(score - max), the state includes the tile, and rescale[r] is the factor by which what was accumulated under the old
// maximum is to be multiplied. Returns whether any factor differs from 1. Scores are in units of ln 2 when kLog2Units,
// else natural.
// Weights are exp(score - max) * 2^-lift, sums likewise: with lift >= log2(number of keys) + 1 the weights of a row sum to
// at most 1/2, so that no sum of weights times values overflows in between. Scaling by a power of two is exact.
// Bounds: where `norms` is given, no score is hidden and |s| <= norms[r] * key_norm in row r. A row whose maximum can then
// grow by kHeadroom at most keeps it as it is: nothing is looked for or rescaled, and exp(score - max) <= 2^kHeadroom.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/exp2.h"
#include "simd/simd.h"

namespace headwise::kernels {

// The running maximum starts here, not at -infinity, so that -infinity minus -infinity is never formed.
inline constexpr float kLowestScore = std::numeric_limits<float>::lowest();

struct SoftmaxTile {
  using V = simd::Vector;

  // 2^31 keys of weight 2^63 sum to less than overflows, even times values of 2^32.
  static constexpr float kHeadroom = 63.0F;

  static constexpr int kTurn = 2 * simd::kLanes;

  template <bool kLog2Units>
  static bool Run(int rows, int width, float* s, std::ptrdiff_t ld, const float* norms, float key_norm, float lift,
                  float* max, float* sums, float* rescale) {
    const Exp2 exp2(kExp2Constants, lift);
    const V unlift = simd::Splat(1.0F) / exp2(simd::Splat(0.0F));
    bool rescaled = false;
    for (int r = 0; r < rows; ++r, s += ld, sums += simd::kLanes) {
      const float old_max = max[r];
      V sum = simd::Load(sums);
      rescale[r] = 1.0F;
      int i = 0;
      if (kLog2Units && norms != nullptr && Within(norms[r] * key_norm, old_max, lift)) {
        const V magic = exp2.magic - simd::Splat(old_max);
        float* at = s;
        for (const float* const end = s + width / kTurn * kTurn; at != end; simd::KeepInPlace(at += kTurn)) {
          sum = sum + ExponentiateBounded(exp2, at, magic);
          sum = sum + ExponentiateBounded(exp2, at + simd::kLanes, magic);
        }
        if (at != s + width) sum = sum + ExponentiateBounded(exp2, at, magic);
        simd::Store(sums, sum);
        continue;
      }
      V top = simd::Splat(old_max);
      for (; i < width; i += simd::kLanes) top = simd::MaxKeepFirst(top, simd::Load(s + i));
      float new_max = simd::MaxLane(top);
      if (kLog2Units) new_max = std::ceil(new_max);
      const V shift = simd::Splat(new_max);
      if (new_max != old_max) {
        const V factor = exp2.Of<kLog2Units>(simd::Splat(old_max) - shift) * unlift;
        sum = sum * factor;
        rescale[r] = simd::FirstLane(factor);
        max[r] = new_max;
        rescaled = true;
      }
      if constexpr (kLog2Units) {
        // As under the bound, so that bits do not depend on which of the two a row goes through.
        const V magic = exp2.magic - shift;
        const V lowest = exp2.lowest + shift;
        for (i = 0; i < width; i += simd::kLanes) {
          const V p = exp2.Shifted(simd::MaxKeepFirst(simd::Load(s + i), lowest), magic);
          simd::Store(s + i, p);
          sum = sum + p;
        }
      } else {
        for (i = 0; i < width; i += simd::kLanes) {
          const V p = exp2.Of<false>(simd::Load(s + i) - shift);
          simd::Store(s + i, p);
          sum = sum + p;
        }
      }
      simd::Store(sums, sum);
    }
    return rescaled;
  }

  // Whether scores of at most `bound` in size neither exceed the maximum by too much nor lie so far below it that 2^x would
  // need Exp2's lower limit.
  static bool Within(float bound, float max, float lift) {
    return bound - max <= kHeadroom && bound + max <= 2 * kHeadroom - lift;
  }

  [[gnu::always_inline]] static inline V ExponentiateBounded(const Exp2& exp2, float* s, V magic) {
    const V p = exp2.Shifted(simd::Load(s), magic);
    simd::Store(s, p);
    return p;
  }
};

}  // namespace headwise::kernels
