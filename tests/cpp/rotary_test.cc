// Tests: rotary position embedding in both pair conventions.
#include "headwise/rotary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "guarded.h"
#include "random_values.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::RandomValues;
using headwise::testing::SameBits;

RotaryArgs OneVector(const std::vector<float>& x, float* y, std::int32_t interleaved, std::int32_t position) {
  RotaryArgs args;
  args.batch = args.heads = args.rows = 1;
  args.size = args.rope.dim = static_cast<std::int32_t>(x.size());
  args.rope.interleaved = interleaved;
  args.x = x.data();
  args.y = y;
  args.position = position;
  return args;
}

TEST(Rotary, TurnsNeighboursOrHalves) {
  ThreadPool pool(1);
  const std::vector<float> x = {1, 2, 3, 4};
  const double neighbours[] = {-1.14264, 1.92208, 2.95985, 4.02980};
  const double halves[] = {-1.98411, 1.95990, 2.46238, 4.01980};
  Guarded y(4);
  ASSERT_TRUE(Rotary(OneVector(x, y.data(), 1, 1), pool).ok());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], neighbours[i], 6e-6);  // five decimals expected
  ASSERT_TRUE(Rotary(OneVector(x, y.data(), 0, 1), pool).ok());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], halves[i], 6e-6);
  for (const std::int32_t interleaved : {0, 1}) {
    ASSERT_TRUE(Rotary(OneVector(x, y.data(), interleaved, 0), pool).ok());
    EXPECT_EQ(y.Values(), x);
  }
  EXPECT_TRUE(y.MarginsIntact());
}

TEST(Rotary, ProductsDependOnTheDistanceAlone) {
  ThreadPool pool(1);
  RandomValues random(1);
  const std::vector<float> q = random.Floats(16);
  const std::vector<float> k = random.Floats(16);
  for (const std::int32_t interleaved : {0, 1}) {
    double products[2] = {};
    for (const int far : {0, 1}) {
      Guarded turned_q(16);
      Guarded turned_k(16);
      ASSERT_TRUE(Rotary(OneVector(q, turned_q.data(), interleaved, far * 50), pool).ok());
      ASSERT_TRUE(Rotary(OneVector(k, turned_k.data(), interleaved, far * 50 + 3), pool).ok());
      for (std::size_t i = 0; i < 16; ++i) products[far] += double{turned_q[i]} * turned_k[i];
    }
    EXPECT_NEAR(products[0], products[1], 1e-5);
  }
}

TEST(Rotary, TurnsTheFirstElementsAndCopiesTheTail) {
  ThreadPool pool(2);
  RandomValues random(2);
  const std::vector<float> x = random.Floats(2 * 3 * 70 * 10);
  RotaryArgs args;
  args.batch = 2;
  args.heads = 3;
  args.rows = 70;
  args.size = 10;
  args.rope.dim = 4;
  args.x = x.data();
  args.x_strides = {3 * 70 * 10, 70 * 10, 10};  // 'bhld'
  Guarded y(static_cast<std::int64_t>(x.size()));
  args.y = y.data();
  args.y_strides = {3 * 70 * 10, 10, 30};  // 'blhd'
  const std::vector<std::int32_t> positions = {0, 5};
  args.positions = positions.data();
  ASSERT_TRUE(Rotary(args, pool).ok());
  EXPECT_TRUE(y.MarginsIntact());
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t h = 0; h < 3; ++h) {
      for (std::size_t i = 0; i < 70; ++i) {
        const float* const from = x.data() + b * 2100 + h * 700 + i * 10;
        const float* const to = y.data() + b * 2100 + h * 10 + i * 30;
        for (std::size_t d = 4; d < 10; ++d) ASSERT_EQ(to[d], from[d]);
        const std::vector<float> head(from, from + 4);
        Guarded expected(4);
        ThreadPool one(1);
        ASSERT_TRUE(Rotary(OneVector(head, expected.data(), 0, positions[b] + static_cast<std::int32_t>(i)), one).ok());
        for (std::size_t d = 0; d < 4; ++d) ASSERT_EQ(to[d], expected[d]) << b << ", " << h << ", " << i;
      }
    }
  }
}

TEST(Rotary, InPlaceEqualsApart) {
  ThreadPool pool(1);
  RandomValues random(3);
  std::vector<float> x = random.Floats(8);
  for (const std::int32_t interleaved : {0, 1}) {
    Guarded apart(8);
    ASSERT_TRUE(Rotary(OneVector(x, apart.data(), interleaved, 7), pool).ok());
    std::vector<float> in_place = x;
    ASSERT_TRUE(Rotary(OneVector(in_place, in_place.data(), interleaved, 7), pool).ok());
    EXPECT_TRUE(SameBits(in_place, apart.Values()));
  }
}

TEST(Rotary, RefusesWhatHasNoPairs) {
  ThreadPool pool(1);
  const std::vector<float> x = {1, 2, 3};
  std::vector<float> y(3);
  RotaryArgs args = OneVector(x, y.data(), 0, 0);
  for (const std::int32_t dim : {-2, 0, 1, 3, 4}) {
    args.rope.dim = dim;
    EXPECT_EQ(Rotary(args, pool).code, StatusCode::kInvalidShape) << dim;
  }
  args.rope.dim = 2;
  for (const float base :
       {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    args.rope.base = base;
    EXPECT_EQ(Rotary(args, pool).code, StatusCode::kInvalidValue) << base;
  }
}

// By the formulas of Hugging Face's transformers, modeling_rope_utils.py, written out once more.
TEST(Rotary, DynamicAndLongRopeGoByTheTextsLength) {
  RotarySettings rope;
  rope.dim = 8;
  rope.base = 100.0F;
  rope.scaling = {RotaryRule::kDynamic, 3.0F, 16.0F};
  for (const std::int32_t pair : {0, 1, 3}) {
    for (const std::int64_t length : {1, 16, 17, 80}) {
      const double longer = length < 16 ? 1.0 : static_cast<double>(length) / 16.0;
      const double base = 100.0 * std::pow(3.0 * longer - 2.0, 8.0 / 6.0);
      EXPECT_NEAR(RotaryFrequency(rope, pair, length), std::pow(base, -pair / 4.0), 1e-12) << pair << ", " << length;
    }
  }
  const float factors[] = {1.0F, 1.5F, 2.0F, 4.0F, 1.0F, 3.0F, 9.0F, 27.0F};
  rope.scaling = {RotaryRule::kLongRope, 1.0F, 16.0F, 1.0F, 4.0F, 1.25F, factors, factors + 4};
  for (const std::int32_t pair : {0, 1, 3}) {
    const double plain = std::pow(100.0, -pair / 4.0);
    EXPECT_NEAR(RotaryFrequency(rope, pair, 16), plain / factors[pair], 1e-12);
    EXPECT_NEAR(RotaryFrequency(rope, pair, 17), plain / factors[4 + pair], 1e-12);
  }
  rope.scaling.long_factors = nullptr;
  EXPECT_STREQ(CheckRotarySettings(rope, 8).argument, "rope.scaling");
}

TEST(Rotary, TheTextIsAsLongAsItsFarthestRow) {
  ThreadPool pool(1);
  RandomValues random(4);
  const std::vector<float> x = random.Floats(2 * 8);
  const std::int32_t positions[] = {40, 3, 2, 1};
  const std::int32_t lengths[] = {41};
  RotaryArgs args = OneVector(x, nullptr, 0, 0);
  args.rows = 2;
  args.size = args.rope.dim = 8;
  args.rope.scaling = {RotaryRule::kDynamic, 3.0F, 16.0F};
  args.x_strides = args.y_strides = {0, 0, 8};
  args.row_positions = positions;
  Guarded both(16);
  args.y = both.data();
  ASSERT_TRUE(Rotary(args, pool).ok());
  // The second row alone, in a text of one row and of as many as it had.
  RotaryArgs alone = args;
  alone.rows = 1;
  alone.x += 8;
  alone.row_positions = positions + 1;
  Guarded y(8);
  alone.y = y.data();
  ASSERT_TRUE(Rotary(alone, pool).ok());
  EXPECT_FALSE(std::equal(both.data() + 8, both.data() + 16, y.data()));
  alone.lengths = lengths;
  ASSERT_TRUE(Rotary(alone, pool).ok());
  EXPECT_TRUE(std::equal(both.data() + 8, both.data() + 16, y.data()));
  EXPECT_TRUE(both.MarginsIntact() && y.MarginsIntact());
}

TEST(Rotary, TransposedGoesBackAndCountedRowsAloneTurn) {
  ThreadPool pool(1);
  RandomValues random(5);
  const std::vector<float> x = random.Floats(3 * 8);
  const std::vector<float> cos = random.Floats(4 * 4);
  const std::vector<float> sin = random.Floats(4 * 4);
  RotaryArgs args = OneVector(x, nullptr, 1, 1);
  args.rows = 3;
  args.size = args.rope.dim = 8;
  args.rope.cos = cos.data();
  args.rope.sin = sin.data();
  args.rope.table_rows = 3;
  args.x_strides = args.y_strides = {0, 0, 8};
  Guarded y(24);
  args.y = y.data();
  EXPECT_STREQ(Rotary(args, pool).argument, "positions");  // rows 0 ... 2 stand at 1 ... 3
  const std::int32_t counts[] = {2};
  args.counts = counts;
  const float untouched = y[16];
  ASSERT_TRUE(Rotary(args, pool).ok());
  EXPECT_TRUE(SameBits({y[16]}, {untouched}));
  // <R x, z> = <x, R^T z>
  const std::vector<float> z = random.Floats(24);
  RotaryArgs back = args;
  back.transposed = 1;
  back.x = z.data();
  Guarded d(24);
  back.y = d.data();
  ASSERT_TRUE(Rotary(back, pool).ok());
  double forward = 0.0;
  double backward = 0.0;
  for (std::size_t i = 0; i < 16; ++i) {
    forward += double{y[i]} * z[i];
    backward += double{x[i]} * d[i];
  }
  EXPECT_NEAR(forward, backward, 1e-5);
  EXPECT_TRUE(y.MarginsIntact() && d.MarginsIntact());
}

}  // namespace
}  // namespace headwise
