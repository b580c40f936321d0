// Tests: scores and values up to the limits of float32, forward and backward: every finite score is finite, no sum overflows
// in between, and weights are as exact for large scores as for small ones. Scores here are exact in float32, so that they are
// the reference's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_backward_case.h"
#include "seeds.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

// One head; queries of ones, keys of one number each, so that score j is that of key j.
AttentionCase Scores(int queries, const std::vector<float>& scores, int value_dim = 3) {
  AttentionCase c;
  c.Shape(1, 1, 1, queries, static_cast<int>(scores.size()), 1, value_dim);
  c.args.scale = 1.0F;
  c.Layout(true);
  RandomValues random(3);
  c.Fill(random);
  std::fill(c.q.begin(), c.q.end(), 1.0F);
  c.k = scores;
  return c;
}

void ExpectReference(AttentionCase c) {
  ThreadPool pool(2);
  for (const bool all : {false, true}) {
    c.want_weights = all;
    c.want_log_sum_exp = all;
    const AttentionOutputs got = c.Fast(pool);
    const AttentionOutputs expected = c.Reference();
    EXPECT_LE(Distance(got.out, expected.out), kAttentionTolerance);
    EXPECT_LE(Distance(got.weights, expected.weights), kAttentionTolerance);
    EXPECT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionTolerance);
  }
}

class Extremes : public ::testing::TestWithParam<int> {};  // queries: direct with 1 and 8, tiled from 9 on
INSTANTIATE_TEST_SUITE_P(Queries, Extremes, ::testing::Values(1, 8, 9, 61, 200));

TEST_P(Extremes, EveryFiniteScoreIsFinite) {
  for (const float top : {130.0F, 1e4F, 1e10F, 2e38F, 2.5e38F, 3.3e38F, 3.4e38F}) {
    for (const float sign : {1.0F, -1.0F}) {
      SCOPED_TRACE(::testing::Message() << "scores of " << sign * top);
      ExpectReference(Scores(GetParam(), std::vector<float>(7, sign * top)));
      ExpectReference(Scores(GetParam(), {0.0F, sign * top, sign * top, 1.0F}));
      ExpectReference(Scores(GetParam(), {sign * top, -1.0F, 3.0F, -sign * top}));
      // Late, and beside keys that are hidden.
      std::vector<float> late(300, 1.0F);
      late[290] = sign * top;
      AttentionCase c = Scores(GetParam(), late);
      ExpectReference(c);
      c.padding.assign(300, 1);
      c.padding[290] = 0;
      ExpectReference(c);
    }
  }
}

TEST_P(Extremes, WhatIsHiddenChangesNoBit) {
  ThreadPool pool(2);
  std::vector<float> scores(300, 0.3F);
  AttentionCase c = Scores(GetParam(), scores);
  c.padding.assign(300, 1);
  c.padding[7] = 0;
  const AttentionOutputs before = c.Fast(pool);
  for (const float hidden : {1e4F, -3e38F, kInf, std::numeric_limits<float>::quiet_NaN()}) {
    c.k[7] = hidden;
    EXPECT_TRUE(SameBits(before.out, c.Fast(pool).out)) << hidden;
  }
}

// Nor does a key past the length, in the block of keys that are seen, by its norm: whether it makes the bound of the scores
// too large or not.
TEST_P(Extremes, WhatFollowsTheLengthChangesNoBit) {
  ThreadPool pool(2);
  AttentionCase c;
  c.Shape(1, 1, 1, GetParam(), 250, 8, 8);
  c.Layout(true);
  RandomValues random(6);
  c.Fill(random, 2.0F);
  c.kv_lengths = {192};
  const AttentionOutputs before = c.Fast(pool);
  for (const float hidden : {0.0F, 20.0F, 1e4F, -3e38F, kInf, std::numeric_limits<float>::quiet_NaN()}) {
    std::fill_n(c.k.begin() + 200 * 8, 8, hidden);
    EXPECT_TRUE(SameBits(before.out, c.Fast(pool).out)) << hidden;
  }
}

TEST_P(Extremes, RisingScoresLoseNoDigits) {
  std::vector<float> scores;
  for (int j = 0; j < 65536; ++j) scores.push_back(static_cast<float>(j) * 0.15625F);  // to 1.0e4, all of them exact
  AttentionCase c = Scores(GetParam(), scores);
  c.want_log_sum_exp = true;
  ThreadPool pool(2);
  const AttentionOutputs got = c.Fast(pool);
  const AttentionOutputs expected = c.Reference();
  EXPECT_LE(Distance(got.out, expected.out), kAttentionTolerance);
  EXPECT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionTolerance);
}

TEST_P(Extremes, SumsOfValuesDoNotOverflow) {
  ThreadPool pool(2);
  for (const int keys : {4, 130, 3000}) {
    for (int options = 0; options < 4; ++options) {
      AttentionCase c = Scores(GetParam(), std::vector<float>(static_cast<std::size_t>(keys), 0.5F), 9);
      for (std::size_t n = 0; n < c.v.size(); ++n) c.v[n] = n % 9 == 8 ? 1.0F : (n % 2 == 0 ? 3.4e38F : 1e38F);
      if (options == 1) c.args.softcap = 2.0F;  // scores of natural units
      if (options == 2) c.sinks = {-3.0F};
      if (options == 3) {
        for (float& v : c.v) v /= 4.0F;
        c.args.dropout_rate = 0.5F;
        c.args.dropout_seed_low = 5;
      }
      const AttentionOutputs got = c.Fast(pool);
      const AttentionOutputs expected = c.Reference();
      ASSERT_TRUE(std::all_of(expected.out.begin(), expected.out.end(), [](float x) { return std::isfinite(x); }));
      EXPECT_LE(Distance(got.out, expected.out), kAttentionTolerance) << keys << " keys, options " << options;
    }
  }
}

// What dropout keeps is multiplied by 5 here: two values that cancel are 0, though either alone is too large then.
TEST_P(Extremes, KeptValuesDoNotOverflowBeforeTheyCancel) {
  ThreadPool pool(2);
  AttentionCase c = Scores(GetParam(), {0.0F, 0.0F}, 9);
  for (std::size_t n = 0; n < c.v.size(); ++n) c.v[n] = n < 9 ? 3e38F : -3e38F;
  c.args.dropout_rate = 0.8F;
  c.args.dropout_seed_low = 5;
  const auto in_values = [](std::vector<float> x) {
    for (float& y : x) y /= 3e38F;
    return x;
  };
  EXPECT_LE(Distance(in_values(c.Fast(pool).out), in_values(c.Reference().out)), kAttentionTolerance);
}

// A row's keys all at one bias: the weights do not change, so the gradients do not.
TEST_P(Extremes, EqualScoresOfAnySizeHaveEqualWeightsBackward) {
  ThreadPool pool(2);
  for (const float bias : {-1e2F, -1e4F, -1e9F, 1e10F, kLowest, 3e38F}) {
    for (int options = 0; options < 4; ++options) {
      AttentionBackwardCase c;
      c.forward = Scores(GetParam(), std::vector<float>(7, 0.0F));
      AttentionArgs& a = c.forward.args;
      c.forward.bias.assign(static_cast<std::size_t>(7 * GetParam()), 0.0F);
      std::fill_n(c.forward.bias.begin(), 7, bias);  // the first row alone
      a.bias_strides = {0, 0, 7, 1};
      if (options == 1) c.forward.sinks = {bias};
      if (options == 2) {
        a.dropout_rate = 0.4F;
        a.dropout_seed_low = 3;
      }
      if (options == 3) a.softcap = 1.0F;
      c.Prepare(7);
      const AttentionGradients got = c.Fast(pool);
      const AttentionGradients expected = c.Reference(pool);
      SCOPED_TRACE(::testing::Message() << "bias " << bias << ", options " << options);
      EXPECT_LE(Distance(got.dv, expected.dv), kAttentionGradientTolerance);
      EXPECT_LE(Distance(got.dq, expected.dq), kAttentionGradientTolerance);
      EXPECT_LE(Distance(got.dk, expected.dk), kAttentionGradientTolerance);
      EXPECT_LE(Distance(got.d_bias, expected.d_bias), kAttentionGradientTolerance);
      EXPECT_LE(Distance(got.d_sinks, expected.d_sinks), kAttentionGradientTolerance);
    }
  }
}

// Where every row sees one key, the output does not depend on queries and keys.
TEST_P(Extremes, OneVisibleKeyHasGradientsOfExactlyZero) {
  ThreadPool pool(2);
  const int queries = GetParam();
  const int keys = queries + 70;
  for (int rule = 0; rule < 6; ++rule) {
    for (const bool dropout : {false, true}) {
      AttentionBackwardCase c;
      RandomValues random(static_cast<std::uint32_t>(rule + 1));
      AttentionCase& f = c.forward;
      f.Shape(1, 2, 1, queries, keys, 24, 40);
      f.Layout(false);
      f.Fill(random, 3.0F);
      const auto only = [&](int i) { return static_cast<std::size_t>(i * keys + (i * 7 + 3) % keys); };
      const auto count = static_cast<std::size_t>(queries * keys);
      switch (rule) {
        case 0:
          f.args.mask_strides = {0, 0, keys, 1};
          f.mask.assign(count, 0);
          for (int i = 0; i < queries; ++i) f.mask[only(i)] = 1;
          break;
        case 1:
          f.args.bias_strides = {0, 0, keys, 1};
          f.bias.assign(count, -kInf);
          for (int i = 0; i < queries; ++i) f.bias[only(i)] = 0.25F;
          break;
        case 2:
          f.args.window_left = 0;
          f.args.window_right = 0;
          break;
        case 3:
          f.padding.assign(static_cast<std::size_t>(keys), 0);
          f.padding[41] = 1;
          break;
        case 4:
          f.args.block_size = 1;
          for (int i = 0; i <= queries; ++i) f.block_rows.push_back(i);
          for (int i = 0; i < queries; ++i) f.block_columns.push_back((i * 7 + 3) % keys);
          break;
        default:
          f.kv_lengths = {1};
      }
      if (dropout) {
        f.args.dropout_rate = 0.5F;
        f.args.dropout_seed_low = 11;
      }
      c.Prepare(4);
      const AttentionGradients got = c.Fast(pool);
      const AttentionGradients expected = c.Reference(pool);
      const auto zero = [](const std::vector<float>& x) {
        return std::all_of(x.begin(), x.end(), [](float y) { return y == 0.0F; });
      };
      SCOPED_TRACE(::testing::Message() << "rule " << rule << ", dropout " << dropout);
      EXPECT_TRUE(zero(got.dq) && zero(got.dk) && zero(got.d_bias));
      EXPECT_LE(Distance(got.dv, expected.dv), kAttentionGradientTolerance);
    }
  }
}

// Any options over numbers that are multiples of a power of two, so that float32 holds every score.
AttentionBackwardCase Exact(std::uint32_t seed) {
  AttentionBackwardCase c = AttentionBackwardCase::Random(seed);
  AttentionCase& f = c.forward;
  RandomValues random(seed + 77);
  const float scale = std::ldexp(random.Integer(0, 1) == 0 ? 1.0F : -1.0F, random.Integer(-3, 80));
  const auto round = [](std::vector<float>& numbers, float factor) {
    for (float& x : numbers) x = std::isinf(x) ? x : std::round(x * 4.0F) / 4.0F * factor;
  };
  round(f.q, 1.0F);
  round(f.k, 1.0F);
  round(f.bias, std::fabs(scale));
  round(f.alibi, std::fabs(scale));
  round(f.sinks, std::fabs(scale));
  f.args.scale = scale;
  f.args.softcap = 0.0F;
  return c;
}

TEST(AttentionExtremes, RandomLargeScoresAgreeWithTheReference) {
  ThreadPool pool(2);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    AttentionBackwardCase c = Exact(seed);
    AttentionCase& f = c.forward;
    f.want_weights = seed % 2 == 0;
    const AttentionOutputs got = f.Fast(pool);
    const AttentionOutputs expected = f.Reference();
    const auto describe = [&] { return "seed " + std::to_string(seed) + ": " + f.Describe(); };
    ASSERT_LE(Distance(got.out, expected.out), kAttentionOptionsTolerance) << describe();
    ASSERT_LE(Distance(got.weights, expected.weights), kAttentionOptionsTolerance) << describe();
    ASSERT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionOptionsTolerance) << describe();
    f.want_weights = !f.want_weights;
    ASSERT_TRUE(SameBits(got.out, f.Fast(pool).out)) << "weights, " << describe();
    f.want_weights = false;
    const AttentionGradients gradients = c.Fast(pool);
    ASSERT_TRUE(c.intact) << describe();
    const AttentionGradients wanted = c.Reference(pool);
    // In units of the scale, by which they grow.
    const auto unscaled = [&](std::vector<float> x) {
      for (float& y : x) y /= f.args.scale;
      return x;
    };
    ASSERT_LE(Distance(unscaled(gradients.dq), unscaled(wanted.dq)), kAttentionGradientTolerance) << describe();
    ASSERT_LE(Distance(unscaled(gradients.dk), unscaled(wanted.dk)), kAttentionGradientTolerance) << describe();
    ASSERT_LE(Distance(gradients.dv, wanted.dv), kAttentionGradientTolerance) << describe();
    ASSERT_LE(Distance(gradients.d_bias, wanted.d_bias), kAttentionGradientTolerance) << describe();
    ASSERT_LE(Distance(gradients.d_sinks, wanted.d_sinks), kAttentionGradientTolerance) << describe();
  }
}

}  // namespace
}  // namespace headwise::testing
