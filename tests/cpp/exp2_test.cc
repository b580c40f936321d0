// Tests: the error bounds that the exponential and tanh kernels state, in units in the last place, over their range.
#include "kernels/exp2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/tanh.h"

namespace headwise::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float Exp2Of(float x) { return simd::FirstLane(Exp2(kExp2Constants)(simd::Splat(x))); }
float TanhOf(float x) { return simd::FirstLane(Tanh()(simd::Splat(x))); }

double Ulps(float got, double expected) {
  const auto rounded = static_cast<float>(std::fabs(expected));
  const double ulp = std::nextafter(rounded, kInf) - static_cast<double>(rounded);
  return std::fabs(got - expected) / ulp;
}

// Every 2^k-th float of a range, by its bits.
template <class Check>
void EveryFloat(float from, float to, std::uint32_t step, Check check) {
  std::uint32_t bits = 0;
  std::uint32_t last = 0;
  std::memcpy(&bits, &from, 4);
  std::memcpy(&last, &to, 4);
  for (; bits <= last; bits += step) {
    float x = 0;
    std::memcpy(&x, &bits, 4);
    check(x);
  }
}

TEST(Exp2, ErrorStaysWithinTheStatedBound) {
  double worst = 0.0;
  for (const float sign : {1.0F, -1.0F}) {
    EveryFloat(1e-10F, 125.99F, 997, [&](float magnitude) {
      const float x = sign * magnitude;
      worst = std::max(worst, Ulps(Exp2Of(x), std::exp2(static_cast<double>(x))));
    });
  }
  EXPECT_LE(worst, kExp2MaxUlp);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Exp2, ShiftedByAWholeNumberItKeepsTheBoundAndRoundsNoDifference) {
  const Exp2 exp2(kExp2Constants);
  double worst = 0.0;
  for (const float shift : {-62.0F, -1.0F, 0.0F, 1.0F, 17.0F, 63.0F}) {
    const simd::Vector magic = exp2.magic - simd::Splat(shift);
    for (const float sign : {1.0F, -1.0F}) {
      EveryFloat(1e-10F, 126.0F, 9973, [&](float magnitude) {
        const float x = sign * magnitude;
        const double exponent = static_cast<double>(x) - static_cast<double>(shift);
        if (exponent < -126.0 || exponent > 126.0) return;
        worst = std::max(worst, Ulps(simd::FirstLane(exp2.Shifted(simd::Splat(x), magic)), std::exp2(exponent)));
      });
    }
  }
  EXPECT_LE(worst, kExp2MaxUlp);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Exp2, SpecialValues) {
  EXPECT_EQ(Exp2Of(0.0F), 1.0F);
  EXPECT_EQ(Exp2Of(-0.0F), 1.0F);
  EXPECT_EQ(Exp2Of(-kInf), 0.0F);
  EXPECT_EQ(Exp2Of(-1e30F), 0.0F);
  EXPECT_EQ(Exp2Of(std::numeric_limits<float>::lowest()), 0.0F);
  EXPECT_EQ(Exp2Of(-127.0F), 0.0F);
  EXPECT_EQ(Exp2Of(-126.501F), 0.0F);
  EXPECT_NEAR(Exp2Of(-126.25F), std::exp2(-126.25F), std::exp2(-149.0F));
  EXPECT_EQ(Exp2Of(-126.0F), std::exp2(-126.0F));
  EXPECT_TRUE(std::isnan(Exp2Of(std::numeric_limits<float>::quiet_NaN())));
  for (int n = -126; n <= 127; ++n) EXPECT_EQ(Exp2Of(static_cast<float>(n)), std::ldexp(1.0F, n)) << n;
}

TEST(Tanh, ErrorStaysWithinTheStatedBound) {
  double worst = 0.0;
  for (const float sign : {1.0F, -1.0F}) {
    EveryFloat(1e-10F, 20.0F, 997, [&](float magnitude) {
      const float x = sign * magnitude;
      worst = std::max(worst, Ulps(TanhOf(x), std::tanh(static_cast<double>(x))));
    });
  }
  EXPECT_LE(worst, kTanhMaxUlp);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Tanh, SpecialValues) {
  EXPECT_EQ(TanhOf(0.0F), 0.0F);
  EXPECT_EQ(TanhOf(kInf), 1.0F);
  EXPECT_EQ(TanhOf(-kInf), -1.0F);
  EXPECT_EQ(TanhOf(1000.0F), 1.0F);
  EXPECT_TRUE(std::isnan(TanhOf(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace headwise::kernels
