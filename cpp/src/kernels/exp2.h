// Kernel: 2^x for the softmax, and what is made from it.
//
// Contract of Exp2: x < 127.5; -infinity and everything below -126.5 give exactly 0; NaN gives NaN; from -126 on the error
// is at most kExp2MaxUlp units in the last place, tested over the range (between the two, results are denormal).
// Method: n = round(x), 2^x = 2^n * 2^(x - n); a minimax polynomial of degree 6 on [-1/2, 1/2] (Remez, relative error).
// Adding 1.5 * 2^23 + 127 rounds x and leaves n + 127 in the low mantissa bits, which moved up are the float 2^n; n = -127
// gives 0. A result times 2^-lift for a whole number lift costs nothing: it is one more summand of that constant; the
// range then ends lift earlier at the lower end, and one of 0 begins there.
#pragma once

#include "simd/simd.h"

namespace headwise::kernels {

inline constexpr float kExp2MaxUlp = 1.5F;

// The constants are read from memory, not written as literals: V8 rebuilds every vector literal at every use, which
// cost 12-15 % of the whole forward pass.
struct Exp2Constants {
  float magic;
  float lowest;
  float log2e;
  float c[7];
};
extern const Exp2Constants& kExp2Constants;

struct Exp2 {
  using V = simd::Vector;

  // Results come times 2^-lift, for a whole number lift of 0 ... 96.
  explicit Exp2(const Exp2Constants& from, float lift = 0.0F)
      : magic(simd::Splat(from.magic - lift)),
        lowest(simd::Splat(from.lowest + lift)),
        log2e(simd::Splat(from.log2e)),
        c{simd::Splat(from.c[0]), simd::Splat(from.c[1]), simd::Splat(from.c[2]), simd::Splat(from.c[3]),
          simd::Splat(from.c[4]), simd::Splat(from.c[5]), simd::Splat(from.c[6])} {}

  V operator()(V x) const {
    const V bounded = simd::MaxKeepFirst(x, lowest);
    const V t = bounded + magic;
    return Polynomial(bounded - (t - magic)) * simd::LowBitsToExponent(t);
  }

  // The exponential of x in units of ln 2, or of a natural x.
  template <bool kLog2Units>
  V Of(V x) const {
    return (*this)(kLog2Units ? x : x * log2e);
  }

  // 2^(x - shift) for a whole number `shift`, which `magic_less_shift` has been made with, and a result that is a normal
  // number: no difference is rounded and nothing is bounded.
  V Shifted(V x, V magic_less_shift) const {
    const V t = x + magic_less_shift;
    return Polynomial(x - (t - magic_less_shift)) * simd::LowBitsToExponent(t);
  }

  V Polynomial(V f) const {
    V p = simd::MulAdd(c[6], f, c[5]);
    p = simd::MulAdd(p, f, c[4]);
    p = simd::MulAdd(p, f, c[3]);
    p = simd::MulAdd(p, f, c[2]);
    p = simd::MulAdd(p, f, c[1]);
    p = simd::MulAdd(p, f, c[0]);
    return p;
  }

  V magic, lowest, log2e, c[7];
};

}  // namespace headwise::kernels
