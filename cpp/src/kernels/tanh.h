// Kernel: tanh of a vector, for softcapping and additive scores.
//
// Contract: any x; NaN gives NaN, infinities +-1; error at most kTanhMaxUlp units in the last place, tested over the
// range. Method: below 0.625 in magnitude an odd minimax polynomial of degree 11 (relative error below 2^-27), beyond
// it 1 - 2 / (e^(2|x|) + 1), where the subtraction loses nothing that counts.
#pragma once

#include "kernels/exp2.h"
#include "simd/simd.h"

namespace headwise::kernels {

inline constexpr float kTanhMaxUlp = 3.0F;

struct TanhConstants {
  float two_log2e;
  float limit;      // beyond it tanh is 1 in float32
  float threshold;  // where the polynomial ends
  float c[5];       // tanh(x) = x + x^3 (c0 + c1 x^2 + ...)
};
extern const TanhConstants& kTanhConstants;

struct Tanh {
  using V = simd::Vector;

  V operator()(V x) const {
    const TanhConstants& k = kTanhConstants;
    const V magnitude = simd::Abs(x);
    const V square = x * x;
    V p = simd::Splat(k.c[4]);
    for (int i = 3; i >= 0; --i) p = simd::MulAdd(p, square, simd::Splat(k.c[i]));
    const V small = simd::MulAdd(p * square, x, x);
    // min(|x|, limit) written so that NaN stays NaN.
    const V limit = simd::Splat(k.limit);
    const V bounded = simd::Select(magnitude > limit, limit, magnitude);
    const V one = simd::Splat(1.0F);
    const V large = one - simd::Splat(2.0F) / (exp2(bounded * simd::Splat(k.two_log2e)) + one);
    return simd::Select(magnitude < simd::Splat(k.threshold), small, simd::CopySign(large, x));
  }

  Exp2 exp2{kExp2Constants};
};

}  // namespace headwise::kernels
