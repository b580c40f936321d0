// Kernel: one panel of scores and of dO V^T -> weights and score gradients.
//
// Contract: `s` and `dp` are panels of `rows` rows of kPanel floats; hidden scores are -infinity. scores are natural.
// shift[r] is the row's log-sum-exp (+infinity for a row without a visible key), delta[r] = dO_r . O_r. On return s holds
// the weights (times dropout's factor when there is one) and dp the gradients of the scores, which also stand in
// ds[r * ld + column]. A hidden score's weight and gradient are exactly 0, whatever dp held: that is selected, not
// multiplied.
// RunExact takes the row's maximum as shift, and what exp(score - maximum) is multiplied by to be the weight:
// unlike a log-sum-exp these lose no digit, however large the scores. A key that has all the weight gets a gradient of 0:
// that is what is left when its own dp, which delta then is, goes off itself (NaN stays NaN).
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/exp2.h"
#include "kernels/gemm_tile.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct SoftmaxBackwardTile {
  using V = simd::Vector;
  static constexpr int kPanel = GemmTile::kPanel;
  static constexpr float kHidden = -std::numeric_limits<float>::infinity();

  // `dropout` is a panel of factors, or null.
  static void Run(int rows, float* s, float* dp, const float* shift, const float* delta, const float* dropout,
                  float* ds, std::ptrdiff_t ld) {
    if (dropout == nullptr) {
      Rows<false, false>(rows, s, dp, shift, nullptr, delta, nullptr, ds, ld);
    } else {
      Rows<true, false>(rows, s, dp, shift, nullptr, delta, dropout, ds, ld);
    }
  }

  static void RunExact(int rows, float* s, float* dp, const float* shift, const float* factor, const float* delta,
                       const float* dropout, float* ds, std::ptrdiff_t ld) {
    if (dropout == nullptr) {
      Rows<false, true>(rows, s, dp, shift, factor, delta, nullptr, ds, ld);
    } else {
      Rows<true, true>(rows, s, dp, shift, factor, delta, dropout, ds, ld);
    }
  }

  // The softcap's slope: multiplies both copies of the gradients by 1 - (capped / cap)^2. `capped` is a panel.
  static void ApplyCapSlope(int rows, const float* capped, float cap, float* dp, float* ds, std::ptrdiff_t ld) {
    const V one = simd::Splat(1.0F);
    const V zero = simd::Splat(0.0F);
    const V inverse = simd::Splat(1.0F / cap);
    for (int r = 0; r < rows; ++r, capped += kPanel, dp += kPanel, ds += ld) {
      for (int i = 0; i < kPanel; i += simd::kLanes) {
        const V t = simd::Load(capped + i) * inverse;
        const V gradient = simd::Load(dp + i);
        // A zero stays one: it may be a hidden key's, whose score may be NaN.
        const V sloped = simd::Select(gradient == zero, zero, gradient * (one - t * t));
        simd::Store(dp + i, sloped);
        simd::Store(ds + i, sloped);
      }
    }
  }

 private:
  template <bool kDropout, bool kExact>
  [[gnu::always_inline]] static inline void Rows(int rows, float* s, float* dp, const float* shift, const float* factor,
                                                 const float* delta, const float* dropout, float* ds,
                                                 std::ptrdiff_t ld) {
    const Exp2 exp2(kExp2Constants);
    const V hidden = simd::Splat(kHidden);
    const V zero = simd::Splat(0.0F);
    for (int r = 0; r < rows; ++r, s += kPanel, dp += kPanel, ds += ld) {
      const V top = simd::Splat(shift[r]);
      const V row_delta = simd::Splat(delta[r]);
      for (int i = 0; i < kPanel; i += simd::kLanes) {
        const V score = simd::Load(s + i);
        const V x = score - top;
        // Selected, since the shift may be NaN.
        V p = exp2.Of<false>(x);
        if constexpr (kExact) p = p * simd::Splat(factor[r]);
        p = simd::Select(score == hidden, zero, p);
        V gradient = simd::Load(dp + i);
        if constexpr (kDropout) {
          const V kept = simd::Load(dropout + r * kPanel + i);
          simd::Store(s + i, p * kept);
          gradient = gradient * kept;
        } else {
          simd::Store(s + i, p);
        }
        V mean = row_delta;
        if constexpr (kExact) mean = simd::Select(p == simd::Splat(1.0F), gradient, mean);
        gradient = simd::Select(score == hidden, zero, p * (gradient - mean));
        simd::Store(dp + i, gradient);
        simd::Store(ds + i, gradient);
      }
    }
  }
};

}  // namespace headwise::kernels
