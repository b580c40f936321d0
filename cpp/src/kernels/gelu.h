// Kernel: GELU and its slope, exact and by tanh.
//
// Contract: any x and any count; outputs may be inputs. NaN gives NaN, infinities the limits. From kGeluLow on (kGeluTanhLow)
// the value's relative error is at most GeluError(x), below it comes out 0 (as it does in float32 sums with anything that is
// not tiny); the slope's error is at most kGeluSlopeError, absolute. Tested over the range.
// Method: exact, Phi(-a) = e^(-a^2/2) P(t) with t = (1 - a/4) / (1 + a/4), a minimax polynomial of degree 9 (Remez, relative
// error 2^-26; in powers of 1 / (1 + a/4) its coefficients would cancel), and Phi(a) = 1 - Phi(-a): nothing cancels, where
// 1 + erf(x) does. By tanh, (1 + tanh u) / 2 = 1 / (1 + e^(-2u)). One
// exponential and one division each, and the slope has them in common with the value.
#pragma once

#include <cstddef>

#include "kernels/exp2.h"
#include "simd/simd.h"

namespace headwise::kernels {

inline constexpr float kGeluLow = -13.0F;
inline constexpr float kGeluTanhLow = -10.0F;
// The exponential passes on the rounding of its argument, which grows as x^2 does.
constexpr float GeluError(float x) { return (6.0F + 3.0F * x * x) * 0x1p-24F; }
inline constexpr float kGeluSlopeError = 0x1p-21F;

struct GeluConstants {
  float low, high;   // beyond them the slope is 0 and 1
  float half_log2e;  // -log2(e) / 2
  float quarter;
  float density;  // of the normal distribution at 0
  float c[10];
};
struct GeluTanhConstants {
  float low, high;
  float z[2];      // -2u in units of ln 2: x (z0 + z1 x^2)
  float slope[2];  // of 2u: d0 + d1 x^2
};
extern const GeluConstants& kGeluConstants;
extern const GeluTanhConstants& kGeluTanhConstants;

struct Gelu {
  using V = simd::Vector;

  // y = GELU(x).
  template <bool kTanh>
  static void Run(const float* x, std::ptrdiff_t count, float* y) {
    const Exp2 exp2(kExp2Constants);
    ForEach(count, y,
            [&](std::ptrdiff_t i, auto load) { return kTanh ? ByTanh(exp2, load(x, i)) : Exact(exp2, load(x, i)); });
  }

  // d_x = d_y * the slope at x.
  template <bool kTanh>
  static void RunSlope(const float* x, const float* d_y, std::ptrdiff_t count, float* d_x) {
    const Exp2 exp2(kExp2Constants);
    ForEach(count, d_x, [&](std::ptrdiff_t i, auto load) {
      const V at = load(x, i);
      return load(d_y, i) * (kTanh ? SlopeByTanh(exp2, at) : ExactSlope(exp2, at));
    });
  }

 private:
  // Calls function(i, load) for every vector of `to`; of the last one, which may be shorter, `load` reads what there is.
  template <class Function>
  [[gnu::always_inline]] static inline void ForEach(std::ptrdiff_t count, float* to, Function function) {
    std::ptrdiff_t i = 0;
    for (; i + simd::kLanes <= count; i += simd::kLanes) {
      simd::Store(to + i, function(i, [](const float* from, std::ptrdiff_t at) { return simd::Load(from + at); }));
    }
    if (i == count) return;
    float lanes[simd::kLanes] = {};
    simd::Store(lanes, function(i, [count](const float* from, std::ptrdiff_t at) {
                  float rest[simd::kLanes] = {};
                  for (std::ptrdiff_t j = at; j < count; ++j) rest[j - at] = from[j];
                  return simd::Load(rest);
                }));
    for (std::ptrdiff_t j = i; j < count; ++j) to[j] = lanes[j - i];
  }

  struct Normal {
    V below;  // Phi(x)
    V e;      // e^(-x^2/2)
  };
  // Of a finite x.
  static Normal NormalAt(const Exp2& exp2, V x) {
    const GeluConstants& k = kGeluConstants;
    const V one = simd::Splat(1.0F);
    const V a = simd::Abs(x);
    const V part = a * simd::Splat(k.quarter);
    const V t = (one - part) / (one + part);
    V p = simd::Splat(k.c[9]);
    for (int i = 8; i >= 0; --i) p = simd::MulAdd(p, t, simd::Splat(k.c[i]));
    const V e = exp2(a * a * simd::Splat(k.half_log2e));
    const V tail = p * e;
    return {simd::Select(x < simd::Splat(0.0F), tail, one - tail), e};
  }

  // Below `low` the exponential is 0 or nearly; an infinity must not meet it.
  static V Exact(const Exp2& exp2, V x) {
    const GeluConstants& k = kGeluConstants;
    return simd::MaxKeepFirst(x, simd::Splat(k.low)) * NormalAt(exp2, Bound(x, k.low, k.high)).below;
  }
  static V ExactSlope(const Exp2& exp2, V x) {
    const GeluConstants& k = kGeluConstants;
    const V bounded = Bound(x, k.low, k.high);
    const Normal normal = NormalAt(exp2, bounded);
    return simd::MulAdd(bounded * simd::Splat(k.density), normal.e, normal.below);
  }

  // e^(-2u)
  static V Power(const Exp2& exp2, V x) {
    const GeluTanhConstants& k = kGeluTanhConstants;
    return exp2(x * simd::MulAdd(x * x, simd::Splat(k.z[1]), simd::Splat(k.z[0])));
  }
  static V ByTanh(const Exp2& exp2, V x) {
    const V low = simd::Splat(kGeluTanhConstants.low);
    const V bounded = simd::MaxKeepFirst(x, low);
    return simd::Select(x < low, simd::Splat(0.0F), bounded / (simd::Splat(1.0F) + Power(exp2, bounded)));
  }
  static V SlopeByTanh(const Exp2& exp2, V x) {
    const GeluTanhConstants& k = kGeluTanhConstants;
    const V one = simd::Splat(1.0F);
    const V bounded = Bound(x, k.low, k.high);
    const V e = Power(exp2, bounded);
    const V s = one / (one + e);
    const V inner = bounded * simd::MulAdd(bounded * bounded, simd::Splat(k.slope[1]), simd::Splat(k.slope[0]));
    return simd::Select(x < simd::Splat(k.low), simd::Splat(0.0F), s * simd::MulAdd(inner, e * s, one));
  }

  // NaN stays NaN.
  static V Bound(V x, float low, float high) {
    const V top = simd::Splat(high);
    return simd::Select(x > top, top, simd::MaxKeepFirst(x, simd::Splat(low)));
  }
};

}  // namespace headwise::kernels
