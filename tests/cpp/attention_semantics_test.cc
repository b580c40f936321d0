// Tests: rules of the public semantics that a random comparison would not isolate, with values checkable by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention_case.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// q = 0: equal weights, so the output is the mean of the visible values v_j = j.
AttentionCase Uniform(int l, int s, int d = 1) {
  AttentionCase c;
  c.Shape(1, 1, 1, l, s, d, 1);
  c.Layout(true);
  c.q.assign(static_cast<std::size_t>(l * d), 0.0F);
  c.k.assign(static_cast<std::size_t>(s * d), 0.0F);
  for (int j = 0; j < s; ++j) c.v.push_back(static_cast<float>(j));
  c.want_log_sum_exp = true;
  return c;
}

class BothPaths : public ::testing::TestWithParam<int> {};  // queries: direct with 1, tiled with 61
INSTANTIATE_TEST_SUITE_P(Queries, BothPaths, ::testing::Values(1, 8, 9, 61));

TEST_P(BothPaths, ASingleVisibleKeyIsFoundInAnyBlock) {
  ThreadPool pool(2);
  const int l = GetParam();
  for (const int s : {1, 31, 64, 65, 129, 257, 1000, 2500}) {
    for (const int only : {0, 1, s / 2, s - 1}) {
      if (only >= s) continue;
      AttentionCase c = Uniform(l, s);
      c.mask.assign(static_cast<std::size_t>(s), 0);
      c.mask[static_cast<std::size_t>(only)] = 1;
      c.args.mask_strides.column = 1;
      const AttentionOutputs got = c.Fast(pool);
      for (const float x : got.out) ASSERT_EQ(x, static_cast<float>(only)) << "S " << s;
      for (const float x : got.log_sum_exp) ASSERT_EQ(x, 0.0F) << "S " << s;
    }
  }
}

TEST_P(BothPaths, HiddenNanAndInfinityNeverReachTheOutput) {
  ThreadPool pool(2);
  const int l = GetParam();
  for (const float poison : {kNan, kInf, -kInf}) {
    for (int where = 0; where < 4; ++where) {
      AttentionCase c = Uniform(l, 130, 3);
      c.v[100] = poison;
      for (int d = 0; d < 3; ++d) c.k[300 + static_cast<std::size_t>(d)] = poison;
      if (where == 0) {
        c.mask.assign(130, 1);
        c.mask[100] = 0;
        c.args.mask_strides.column = 1;
      } else if (where == 1) {
        c.padding.assign(130, 1);
        c.padding[100] = 0;
      } else if (where == 2) {
        c.bias.assign(130, 0.0F);
        c.bias[100] = -kInf;
        c.args.bias_strides.column = 1;
      } else {
        c.kv_lengths = {100};
      }
      const AttentionOutputs got = c.Fast(pool);
      const AttentionOutputs expected = c.Reference();
      ASSERT_FALSE(std::isnan(expected.out[0]));
      ASSERT_LE(Distance(got.out, expected.out), kAttentionTolerance) << "rule " << where << ", poison " << poison;
    }
  }
}

TEST_P(BothPaths, AVisibleNanPoisonsTheRowsThatSeeItAndNoOthers) {
  ThreadPool pool(2);
  const int l = GetParam();
  AttentionCase c = Uniform(l, l);
  c.args.causal = 1;
  c.v[static_cast<std::size_t>(l / 2)] = kNan;
  const AttentionOutputs got = c.Fast(pool);
  for (int i = 0; i < l; ++i) EXPECT_EQ(std::isnan(got.out[static_cast<std::size_t>(i)]), i >= l / 2) << i;
}

TEST_P(BothPaths, AFiniteBiasHidesNothing) {
  ThreadPool pool(2);
  AttentionCase c = Uniform(GetParam(), 5);
  c.bias.assign(5, std::numeric_limits<float>::lowest());
  c.args.bias_strides.column = 1;
  for (const float x : c.Fast(pool).out) EXPECT_EQ(x, 2.0F);
  c.alibi = {1e38F};
  const AttentionOutputs got = c.Fast(pool);
  for (const float x : got.out) EXPECT_TRUE(std::isfinite(x));
}

TEST_P(BothPaths, RowsWithoutAVisibleKeyAreZero) {
  ThreadPool pool(2);
  for (const bool sinks : {false, true}) {
    AttentionCase c = Uniform(GetParam(), 70);
    c.kv_lengths = {0};
    c.want_weights = true;
    if (sinks) c.sinks = {1.5F};
    const AttentionOutputs got = c.Fast(pool);
    for (const float x : got.out) EXPECT_EQ(x, 0.0F);
    for (const float x : got.weights) EXPECT_EQ(x, 0.0F);
    for (const float x : got.log_sum_exp) EXPECT_EQ(x, -kInf);
  }
}

TEST_P(BothPaths, UnitScaleInputsKeepThePromise) {
  ThreadPool pool(2);
  for (const int d : {64, 128}) {
    RandomValues random(static_cast<std::uint32_t>(d));
    AttentionCase c;
    c.Shape(1, 2, 2, GetParam(), 3001, d, d);
    c.Layout(true);
    c.Fill(random);
    c.want_log_sum_exp = true;
    const AttentionOutputs got = c.Fast(pool);
    const AttentionOutputs expected = c.Reference();
    EXPECT_LE(Distance(got.out, expected.out), kAttentionTolerance);
    EXPECT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionTolerance);
  }
}

TEST(AttentionSemantics, CausalIsBottomRightUnlessAnOffsetSaysOtherwise) {
  ThreadPool pool(1);
  AttentionCase c = Uniform(2, 5);
  for (float& v : c.v) v += 1.0F;
  c.args.causal = 1;
  EXPECT_EQ(c.Fast(pool).out, (std::vector<float>{2.5F, 3.0F}));
  c.offsets = {0};
  EXPECT_EQ(c.Fast(pool).out, (std::vector<float>{1.0F, 1.5F}));
  c = Uniform(5, 2);
  c.v = {2.0F, 4.0F};
  c.args.causal = 1;
  EXPECT_EQ(c.Fast(pool).out, (std::vector<float>{0.0F, 0.0F, 0.0F, 2.0F, 3.0F}));
}

TEST(AttentionSemantics, EmptySizesAreValid) {
  ThreadPool pool(4);
  for (const auto& [b, l, s] : {std::array<int, 3>{0, 4, 4}, {1, 0, 4}, {1, 4, 0}, {1, 40, 0}, {0, 0, 0}}) {
    AttentionCase c;
    c.Shape(b, 2, 2, l, s, 3, 3);
    c.Layout(true);
    RandomValues random(1);
    c.Fill(random);
    c.want_weights = true;
    c.args.causal = 1;
    Status status;
    const AttentionOutputs got = c.Outputs([&](const AttentionArgs& a) { return Attention(a, pool); }, &status);
    EXPECT_TRUE(status.ok());
    for (const float x : got.out) EXPECT_EQ(x, 0.0F);
  }
}

// Rows without numbers are no work, however many they are; rows without keys are zeros, block by block.
TEST(AttentionSemantics, RowsWithNothingToComputeAreNoWork) {
  ThreadPool pool(2);
  AttentionCase c;
  c.Shape(1, 1, 1, std::numeric_limits<std::int32_t>::max(), 5, 0, 0);
  const float number = 0.0F;
  AttentionArgs a = c.args;
  a.q = a.k = a.v = &number;
  float out = 1.0F;
  a.out = &out;
  AttentionForward forward;
  Job job;
  ASSERT_TRUE(forward.Prepare(a, pool, job).ok());
  EXPECT_TRUE(job.Run(pool, 0.0));
  EXPECT_EQ(out, 1.0F);

  c.Shape(2, 2, 1, 100000, 0, 4, 3);
  c.Layout(false);
  c.want_log_sum_exp = true;
  int slices = 0;
  const AttentionOutputs got = c.Outputs([&](const AttentionArgs& args) {
    AttentionForward sliced;
    Job phases;
    const Status status = sliced.Prepare(args, pool, phases);
    for (slices = 1; status.ok() && !phases.Run(pool, 0.0);) ++slices;
    return status;
  });
  EXPECT_GT(slices, 3);
  EXPECT_TRUE(c.intact);
  for (const float x : got.out) ASSERT_EQ(x, 0.0F);
  for (const float x : got.log_sum_exp) ASSERT_EQ(x, -kInf);
}

TEST(AttentionSemantics, KeptWeightsAreScaledAndAboutTheRateIsDropped) {
  ThreadPool pool(2);
  AttentionCase c = Uniform(200, 200);
  c.v.assign(200, 1.0F);
  c.args.dropout_rate = 0.25F;
  c.args.dropout_seed_low = 7;
  const AttentionOutputs got = c.Fast(pool);
  double mean = 0.0;
  for (const float x : got.out) mean += x / 200.0;
  EXPECT_NEAR(mean, 1.0, 0.01);
  c.args.dropout_rate = 1.0F;
  for (const float x : c.Fast(pool).out) EXPECT_EQ(x, 0.0F);
}

TEST(AttentionSemantics, WrongArgumentsAreNamed) {
  ThreadPool pool(1);
  const auto argument = [&](auto change) {
    AttentionCase c = Uniform(2, 2);
    change(c);
    Status status;
    c.Outputs([&](const AttentionArgs& a) { return Attention(a, pool); }, &status);
    EXPECT_FALSE(status.ok());
    return std::string(status.argument);
  };
  EXPECT_EQ(argument([](AttentionCase& c) { c.args.scale = kNan; }), "scale");
  EXPECT_EQ(argument([](AttentionCase& c) { c.args.softcap = -1.0F; }), "softcap");
  EXPECT_EQ(argument([](AttentionCase& c) { c.args.kv_heads = 2; }), "kv_heads");
  EXPECT_EQ(argument([](AttentionCase& c) { c.args.dropout_rate = 1.5F; }), "dropout_rate");
  EXPECT_EQ(argument([](AttentionCase& c) { c.kv_lengths = {3}; }), "kv_lengths");
  EXPECT_EQ(argument([](AttentionCase& c) { c.args.window_left = -2; }), "window_left");
}

}  // namespace
}  // namespace headwise::testing
