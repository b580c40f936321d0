// Tests: the cells of a cache: every binary16 number, rounding, and the error bounds that the kernel states.
#include "kernels/cells.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "guarded.h"
#include "kernels/kernel_table.h"
#include "random_values.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::RandomValues;

// The value of a binary16 by its definition.
double ValueOf(std::uint32_t half) {
  const int exponent = static_cast<int>(half >> 10U & 31U);
  const double fraction = static_cast<double>(half & 1023U) / 1024.0;
  const double sign = (half & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0.0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1.0 + fraction, exponent - 15));
}

TEST(Cells, WidenEveryHalfExactly) {
  std::vector<std::uint16_t> halves(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) halves[i] = static_cast<std::uint16_t>(i);
  Guarded wide(65536);
  // Rows of 31 leave a tail behind the vectors.
  kernels::Kernels().widen_half(halves.data(), 31, 2114, 31, wide.data());
  kernels::Kernels().widen_half(halves.data() + 65534, 2, 1, 2, wide.data() + 65534);
  EXPECT_TRUE(wide.MarginsIntact());
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const double expected = ValueOf(i);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(wide[i], static_cast<float>(expected)) << i;
    }
  }
}

TEST(Cells, NarrowingAndWideningKeepsEveryHalf) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto value = static_cast<float>(ValueOf(i));
    std::uint16_t half = 0;
    kernels::Kernels().narrow_half(&value, 1, &half);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(ValueOf(half))) << i;
    } else {
      ASSERT_EQ(half, i) << value;
    }
  }
}

TEST(Cells, HalvesRoundToTheNearestEven) {
  for (std::uint32_t i = 0; i < 0x7bff; ++i) {
    const double low = ValueOf(i);
    const double high = ValueOf(i + 1);
    const auto middle = static_cast<float>((low + high) / 2.0);  // exact in float32
    const float values[] = {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)};
    std::uint16_t halves[3] = {};
    kernels::Kernels().narrow_half(values, 3, halves);
    ASSERT_EQ(halves[0], i % 2 == 0 ? i : i + 1) << middle;
    ASSERT_EQ(halves[1], i) << middle;
    ASSERT_EQ(halves[2], i + 1) << middle;
  }
  const float beyond[] = {65519.0F, 65520.0F, -1e30F};
  std::uint16_t halves[3] = {};
  kernels::Kernels().narrow_half(beyond, 3, halves);
  EXPECT_EQ(halves[0], 0x7bff);
  EXPECT_EQ(halves[1], 0x7c00);
  EXPECT_EQ(halves[2], 0xfc00);
}

TEST(Cells, Int8StaysWithinHalfAFactor) {
  RandomValues random(1);
  for (const int size : {1, 3, 4, 7, 64, 129}) {
    for (const float scale : {1.0F, 1e-30F, 1e30F}) {
      const std::vector<float> row = random.Floats(size, -scale, scale);
      std::vector<std::int8_t> cells(static_cast<std::size_t>(size));
      const float factor = kernels::Kernels().narrow_int8(row.data(), size, cells.data());
      float top = 0.0F;
      for (const float x : row) top = std::max(top, std::fabs(x));
      EXPECT_FLOAT_EQ(factor, top / 127.0F);
      Guarded wide(2 * size);
      const float factors[] = {factor, -1.0F, factor};
      kernels::Kernels().widen_int8(cells.data(), 0, 2, size, factors, 2, wide.data());
      EXPECT_TRUE(wide.MarginsIntact());
      for (int d = 0; d < size; ++d) {
        const auto at = static_cast<std::size_t>(d);
        ASSERT_LE(std::fabs(double{wide[at]} - row[at]), double{factor} * (0.5 + 1e-5));
        ASSERT_EQ(wide[at], wide[at + static_cast<std::size_t>(size)]);
      }
    }
  }
}

TEST(Cells, RowsThatInt8CannotHold) {
  std::vector<std::int8_t> cells(4, 9);
  const float zeros[] = {0.0F, 0.0F, -0.0F, 0.0F};
  EXPECT_EQ(kernels::Kernels().narrow_int8(zeros, 4, cells.data()), 0.0F);
  EXPECT_EQ(cells, std::vector<std::int8_t>(4, 0));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const float row[] = {1.0F, bad, 2.0F, 3.0F};
    EXPECT_TRUE(std::isnan(kernels::Kernels().narrow_int8(row, 4, cells.data())));
  }
  const float tiny[] = {1e-45F, -1e-45F, 0.0F, 3e-45F};  // the factor itself underflows
  const float factor = kernels::Kernels().narrow_int8(tiny, 4, cells.data());
  EXPECT_LE(factor, 1e-45F);
}

}  // namespace
}  // namespace headwise
