// Tests: attention against the double reference over random shapes and options; and that a call's bits depend neither
// on the threads, nor on slicing, nor on what else is asked for.
#include <gtest/gtest.h>

#include "attention_case.h"
#include "kernels/kernel_table.h"
#include "seeds.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

TEST(AttentionRandom, AgreesWithTheReference) {
  ThreadPool pool(2);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const AttentionCase c = AttentionCase::Random(seed);
    const AttentionOutputs got = c.Fast(pool);
    ASSERT_TRUE(c.intact) << "wrote outside, seed " << seed << ": " << c.Describe();
    const AttentionOutputs expected = c.Reference();
    ASSERT_LE(Distance(got.out, expected.out), kAttentionOptionsTolerance) << "seed " << seed << ": " << c.Describe();
    ASSERT_LE(Distance(got.weights, expected.weights), kAttentionOptionsTolerance)
        << "seed " << seed << ": " << c.Describe();
    ASSERT_LE(Distance(got.scores, expected.scores), kScoreTolerance) << "seed " << seed << ": " << c.Describe();
    ASSERT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionOptionsTolerance)
        << "seed " << seed << ": " << c.Describe();
  }
}

TEST(AttentionRandom, BitsDependOnNothingElse) {
  ThreadPool one(1);
  ThreadPool three(3);
  for (std::uint32_t seed = 1; seed <= kSeeds / 3; ++seed) {
    AttentionCase c = AttentionCase::Random(seed);
    const AttentionOutputs first = c.Fast(one);
    const AttentionOutputs second = c.Fast(three);
    ASSERT_TRUE(SameBits(first.out, second.out)) << "threads, seed " << seed << ": " << c.Describe();
    ASSERT_TRUE(SameBits(first.weights, second.weights)) << "threads, seed " << seed;
    kernels::UseShortTurns(true);
    const AttentionOutputs turned = c.Fast(one);
    kernels::UseShortTurns(false);
    ASSERT_TRUE(SameBits(first.out, turned.out)) << "short turns, seed " << seed << ": " << c.Describe();
    c.want_weights = !c.want_weights;
    c.want_log_sum_exp = !c.want_log_sum_exp;
    c.weight_heads.clear();
    c.args.score_stage = c.args.score_stage == ScoreStage::kNone ? ScoreStage::kRaw : ScoreStage::kNone;
    ASSERT_TRUE(SameBits(first.out, c.Fast(one).out)) << "asked outputs, seed " << seed << ": " << c.Describe();
  }
}

// Two calls in slices of one task, in turns over one pool: neither sees the other's packed keys.
TEST(AttentionRandom, SlicesOfTwoCallsDoNotMix) {
  ThreadPool pool(2);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    RandomValues random(seed);
    AttentionCase a;
    a.Shape(2, 4, 2, 61 + random.Integer(0, 80), 130, 16, 24);
    a.Layout(true);
    a.Fill(random);
    AttentionCase b;
    b.Shape(1, 4, 4, random.Integer(1, 2) == 1 ? 2 : 130, 2100, 8, 8);
    b.Layout(false);
    b.Fill(random);
    AttentionForward forward_a;
    AttentionForward forward_b;
    Job job_a;
    Job job_b;
    AttentionOutputs sliced_b;
    const AttentionOutputs sliced_a = a.Outputs([&](const AttentionArgs& args_a) {
      sliced_b = b.Outputs([&](const AttentionArgs& args_b) {
        EXPECT_TRUE(forward_a.Prepare(args_a, pool, job_a).ok());
        EXPECT_TRUE(forward_b.Prepare(args_b, pool, job_b).ok());
        bool done_a = false;
        bool done_b = false;
        while (!done_a || !done_b) {
          if (!done_a) done_a = job_a.Run(pool, 0.0);
          if (!done_b) done_b = job_b.Run(pool, 0.0);
        }
        return Status::Ok();
      });
      return Status::Ok();
    });
    ASSERT_TRUE(SameBits(sliced_a.out, a.Fast(pool).out)) << seed;
    ASSERT_TRUE(SameBits(sliced_b.out, b.Fast(pool).out)) << seed;
  }
}

}  // namespace
}  // namespace headwise::testing
