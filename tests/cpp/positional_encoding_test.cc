// Tests: sinusoidal position encodings, against numbers computed by hand from the paper's formula.
#include "headwise/positional_encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "guarded.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;

constexpr double kRounded = 5e-8;  // the expected numbers have seven decimals

TEST(PositionalEncoding, MatchesThePaper) {
  ThreadPool pool(1);
  Guarded four(8);
  ASSERT_TRUE(PositionalEncoding({2, 4, 0, four.data()}, pool).ok());
  const double expected_four[] = {0, 1, 0, 1, 0.8414710, 0.5403023, 0.0099998, 0.9999500};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(four[i], expected_four[i], kRounded) << i;
  EXPECT_TRUE(four.MarginsIntact());

  Guarded five(5);
  ASSERT_TRUE(PositionalEncoding({1, 5, 1, five.data()}, pool).ok());
  const double expected_five[] = {0.8414710, 0.5403023, 0.0251162, 0.9996845, 0.0006310};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(five[i], expected_five[i], kRounded) << i;
  EXPECT_TRUE(five.MarginsIntact());
}

TEST(PositionalEncoding, PairsShareTheirAngle) {
  ThreadPool pool(3);
  const std::int32_t length = 300;
  const std::int32_t width = 18;
  Guarded y(length * width);
  ASSERT_TRUE(PositionalEncoding({length, width, 0, y.data()}, pool).ok());
  for (std::size_t i = 0; i < y.size(); i += 2) {
    EXPECT_NEAR(double{y[i]} * y[i] + double{y[i + 1]} * y[i + 1], 1.0, 2e-7);  // two roundings to float
  }
}

TEST(PositionalEncoding, FarPositionsKeepTheirPrecision) {
  ThreadPool pool(1);
  Guarded y(2);
  ASSERT_TRUE(PositionalEncoding({1, 2, 1000003, y.data()}, pool).ok());
  EXPECT_EQ(y[0], static_cast<float>(std::sin(1000003.0)));
  EXPECT_EQ(y[1], static_cast<float>(std::cos(1000003.0)));
}

TEST(PositionalEncoding, AcceptsSizesOfZero) {
  ThreadPool pool(1);
  EXPECT_TRUE(PositionalEncoding({0, 4, 0, nullptr}, pool).ok());
  EXPECT_TRUE(PositionalEncoding({4, 0, 0, nullptr}, pool).ok());
  EXPECT_EQ(PositionalEncoding({-1, 4, 0, nullptr}, pool).code, StatusCode::kInvalidShape);
  EXPECT_EQ(PositionalEncoding({1, 4, 0, nullptr}, pool).code, StatusCode::kInvalidValue);
}

}  // namespace
}  // namespace headwise
