// Tests: attention's gradients against the double reference over random shapes and options, the reference against finite
// differences; hidden keys, empty rows, NaN, and bits that do not depend on threads or slices.
#include "headwise/attention_backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/backward_plan.h"
#include "attention_backward_case.h"
#include "seeds.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

TEST(AttentionBackward, AgreesWithTheReference) {
  ThreadPool pool(2);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const AttentionBackwardCase c = AttentionBackwardCase::Random(seed);
    const AttentionGradients got = c.Fast(pool);
    ASSERT_TRUE(c.intact) << "failed, or wrote outside, seed " << seed << ": " << c.forward.Describe();
    const AttentionGradients expected = c.Reference(pool);
    const auto describe = [&] { return "seed " + std::to_string(seed) + ": " + c.forward.Describe(); };
    ASSERT_LE(Distance(got.dq, expected.dq), kAttentionGradientTolerance) << "dq " << describe();
    ASSERT_LE(Distance(got.dk, expected.dk), kAttentionGradientTolerance) << "dk " << describe();
    ASSERT_LE(Distance(got.dv, expected.dv), kAttentionGradientTolerance) << "dv " << describe();
    ASSERT_LE(Distance(got.d_bias, expected.d_bias), kAttentionGradientTolerance) << "dBias " << describe();
    ASSERT_LE(Distance(got.d_sinks, expected.d_sinks), kAttentionGradientTolerance) << "dSinks " << describe();
  }
}

TEST(AttentionBackward, BitsDoNotDependOnThreads) {
  ThreadPool one(1);
  ThreadPool three(3);
  for (std::uint32_t seed = 1; seed <= kSeeds / 3; ++seed) {
    const AttentionBackwardCase c = AttentionBackwardCase::Random(seed);
    const AttentionGradients first = c.Fast(one);
    const AttentionGradients second = c.Fast(three);
    ASSERT_TRUE(SameBits(first.dq, second.dq) && SameBits(first.dk, second.dk) && SameBits(first.dv, second.dv) &&
                SameBits(first.d_bias, second.d_bias) && SameBits(first.d_sinks, second.d_sinks))
        << "seed " << seed << ": " << c.forward.Describe();
  }
}

// Several chunks of queries and keys, a bias that every batch and head adds to, in slices of one task.
TEST(AttentionBackward, ChunksShareOneBias) {
  AttentionBackwardCase c;
  RandomValues random(5);
  c.forward.Shape(2, 4, 2, 300, 290, 16, 24);
  c.forward.Layout(false);
  c.forward.Fill(random);
  c.forward.args.bias_strides = {0, 0, 290, 1};
  c.forward.bias = random.Floats(300 * 290);
  c.Prepare(5);
  const AttentionArgs& a = c.forward.args;
  EXPECT_GT(PlanAttentionBackward({a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.head_dim, a.value_dim}, {8, 6, 4})
                .phases(),
            1);
  ThreadPool pool(2);
  const AttentionGradients expected = c.Reference(pool);
  const AttentionGradients sliced = c.Gradients(pool, [&](const AttentionBackwardArgs& args) {
    AttentionBackward backward;
    Job job;
    const Status status = backward.Prepare(args, pool, job);
    while (status.ok() && !job.Run(pool, 0.0)) continue;
    return status;
  });
  EXPECT_LE(Distance(sliced.d_bias, expected.d_bias), kAttentionGradientTolerance);
  EXPECT_LE(Distance(sliced.dq, expected.dq), kAttentionGradientTolerance);
  EXPECT_LE(Distance(sliced.dk, expected.dk), kAttentionGradientTolerance);
  EXPECT_TRUE(SameBits(sliced.d_bias, c.Fast(pool).d_bias));
}

// Keys that nobody may see hold NaN: their gradients are exactly 0, and nothing else changes.
TEST(AttentionBackward, HiddenKeysGetExactlyZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(2);
  for (const bool capped : {false, true}) {
    AttentionBackwardCase c;
    RandomValues random(9);
    c.forward.Shape(2, 4, 2, 100, 70, 20, 12);
    c.forward.Layout(true);
    c.forward.Fill(random);
    c.forward.args.softcap = capped ? 2.0F : 0.0F;
    c.forward.padding.assign(2 * 70, 1);
    for (const int j : {3, 40, 69}) c.forward.padding[70 + static_cast<std::size_t>(j)] = 0;
    c.Prepare(9);
    const AttentionGradients clean = c.Fast(pool);
    for (std::size_t g = 0; g < 2; ++g) {
      for (const std::size_t j : {3U, 40U, 69U}) {
        const std::size_t row = (2 + g) * 70 + j;
        for (std::size_t d = 0; d < 20; ++d) {
          EXPECT_EQ(clean.dk[row * 20 + d], 0.0F);
          c.forward.k[row * 20 + d] = nan;
        }
        for (std::size_t d = 0; d < 12; ++d) {
          EXPECT_EQ(clean.dv[row * 12 + d], 0.0F);
          c.forward.v[row * 12 + d] = d % 2 == 0 ? nan : std::numeric_limits<float>::infinity();
        }
      }
    }
    const AttentionGradients poisoned = c.Fast(pool);
    EXPECT_TRUE(SameBits(clean.dq, poisoned.dq));
    EXPECT_TRUE(SameBits(clean.dk, poisoned.dk));
    EXPECT_TRUE(SameBits(clean.dv, poisoned.dv));
  }
}

// A NaN in dO reaches the keys that its row sees and no others; in a row that sees none it reaches nobody.
TEST(AttentionBackward, NaNInTheGradientStaysInItsRow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(1);
  AttentionBackwardCase c;
  RandomValues random(11);
  c.forward.Shape(1, 1, 1, 20, 20, 8, 8);
  c.forward.Layout(true);
  c.forward.Fill(random);
  c.forward.args.causal = 1;
  c.forward.sinks = {0.5F};
  c.forward.q_lengths = {18};
  c.forward.offsets = {0};
  c.Prepare(11);
  const AttentionGradients clean = c.Fast(pool);
  c.d_out[19 * 8 + 2] = nan;  // past the query length
  const AttentionGradients same = c.Fast(pool);
  EXPECT_TRUE(SameBits(clean.dv, same.dv) && SameBits(clean.dk, same.dk) && SameBits(clean.d_sinks, same.d_sinks));
  c.d_out[5 * 8 + 2] = nan;
  const AttentionGradients got = c.Fast(pool);
  for (std::size_t j = 0; j < 20; ++j) {
    for (std::size_t d = 0; d < 8; ++d) {
      EXPECT_EQ(std::isnan(got.dv[j * 8 + d]), j <= 5 && d == 2) << j << " " << d;
      EXPECT_EQ(std::isnan(got.dk[j * 8 + d]), j <= 5) << j << " " << d;
      EXPECT_EQ(std::isnan(got.dq[j * 8 + d]), j == 5) << j << " " << d;
    }
  }
}

TEST(AttentionBackward, EmptySizesAndEmptyRows) {
  ThreadPool pool(2);
  for (const bool keys : {false, true}) {
    AttentionBackwardCase c;
    RandomValues random(3);
    c.forward.Shape(2, 2, 1, keys ? 0 : 5, keys ? 6 : 0, 4, 3);
    c.forward.Layout(true);
    c.forward.Fill(random);
    c.Prepare(3);
    const AttentionGradients got = c.Fast(pool);
    EXPECT_TRUE(c.intact);
    for (const auto* gradient : {&got.dq, &got.dk, &got.dv}) {
      for (const float x : *gradient) EXPECT_EQ(x, 0.0F);
    }
  }
}

// One side is cut where the other has nothing left to cut; slices of one task change no bit.
class LongSide : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Queries, LongSide, ::testing::Bool());

TEST_P(LongSide, IsCutAlone) {
  ThreadPool pool(2);
  ThreadPool one(1);
  const bool queries = GetParam();
  const int many = kSeeds < 400 ? 10000 : 20000;  // three phases; five where nothing slows the reference
  AttentionBackwardCase c;
  RandomValues random(8);
  c.forward.Shape(1, 2, 1, queries ? many : 50, queries ? 50 : many, 128, 128);
  c.forward.Layout(true);
  c.forward.Fill(random);
  c.Prepare(8);
  const AttentionArgs& a = c.forward.args;
  const AttentionBackwardPlan plan =
      PlanAttentionBackward({a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.head_dim, a.value_dim}, {8, 6, 4});
  ASSERT_EQ(plan.tasks(), 1);
  ASSERT_GT(plan.phases(), 2);
  const AttentionGradients expected = c.Reference(pool);
  const AttentionGradients got = c.Fast(one);
  EXPECT_LE(Distance(got.dq, expected.dq), kAttentionGradientTolerance);
  EXPECT_LE(Distance(got.dk, expected.dk), kAttentionGradientTolerance);
  EXPECT_LE(Distance(got.dv, expected.dv), kAttentionGradientTolerance);
  const AttentionGradients sliced = c.Gradients(pool, [&](const AttentionBackwardArgs& args) {
    AttentionBackward backward;
    Job job;
    const Status status = backward.Prepare(args, pool, job);
    while (status.ok() && !job.Run(pool, 0.0)) continue;
    return status;
  });
  EXPECT_TRUE(SameBits(got.dq, sliced.dq) && SameBits(got.dk, sliced.dk) && SameBits(got.dv, sliced.dv));
}

// The reference against differences of its own forward pass, for every input that has a gradient. Central differences of
// fourth order; the step is a power of two, so that inputs move exactly.
TEST(AttentionBackward, ReferenceAgreesWithFiniteDifferences) {
  ThreadPool pool(1);
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    AttentionBackwardCase c;
    RandomValues random(seed);
    c.forward.Shape(2, 4, 2, 5, 6, 3, 2);
    c.forward.Layout(seed % 2 == 0);
    c.forward.Fill(random);
    AttentionArgs& a = c.forward.args;
    if (seed % 3 == 1) a.softcap = 1.5F;
    if (seed % 2 == 1) {
      a.bias_strides = seed % 4 == 1 ? BroadcastStrides{0, 30, 6, 1} : BroadcastStrides{4, 1, 0, 0};
      c.forward.bias = random.Floats(seed % 4 == 1 ? 4 * 30 : 8);
    }
    if (seed % 4 < 2) c.forward.sinks = random.Floats(4);
    if (seed % 5 == 2) c.forward.alibi = random.Floats(4, 0.0F, 0.5F);
    if (seed % 3 == 2) a.causal = 1;
    if (seed % 6 == 0) a.window_left = 2;
    if (seed % 4 == 3) {
      a.dropout_rate = 0.3F;
      a.dropout_seed_low = seed;
    }
    if (seed % 5 == 0) c.forward.kv_lengths = {4, 6};
    c.Prepare(seed);
    const AttentionGradients gradients = c.Reference(pool);
    const auto loss = [&c] {
      const std::vector<float> out = c.forward.Reference().out;
      double sum = 0.0;
      for (std::size_t n = 0; n < out.size(); ++n) sum += static_cast<double>(out[n]) * c.d_out[n];
      return sum;
    };
    const auto check = [&](std::vector<float>& input, const std::vector<float>& gradient, const char* name) {
      constexpr float kStep = 0x1p-5F;
      for (std::size_t n = 0; n < input.size(); ++n) {
        const float x = input[n];
        const auto at = [&](float step) {
          input[n] = x + step;
          return loss();
        };
        const double difference = (8.0 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12.0 * kStep);
        input[n] = x;
        ASSERT_NEAR(gradient[n], difference, kFiniteDifferenceTolerance) << name << "[" << n << "], seed " << seed;
      }
    };
    check(c.forward.q, gradients.dq, "q");
    check(c.forward.k, gradients.dk, "k");
    check(c.forward.v, gradients.dv, "v");
    check(c.forward.bias, gradients.d_bias, "bias");
    check(c.forward.sinks, gradients.d_sinks, "sinks");
  }
}

TEST(AttentionBackward, RefusesWhatHasNoGradient) {
  AttentionBackwardArgs args;
  args.attention.score_kind = ScoreKind::kAdditive;
  EXPECT_EQ(CheckAttentionBackward(args).code, StatusCode::kInvalidValue);
  args.attention.score_kind = ScoreKind::kDot;
  EXPECT_TRUE(CheckAttentionBackward(args).ok());
  float number = 0.0F;
  args.d_sinks = &number;
  EXPECT_STREQ(CheckAttentionBackward(args).argument, "d_sinks");
}

}  // namespace
}  // namespace headwise::testing
