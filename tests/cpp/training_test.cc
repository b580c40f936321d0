// Tests: cross-entropy, optimizers, schedules, clipping and the parameters' arena.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "finite_differences.h"
#include "guarded.h"
#include "headwise/cross_entropy.h"
#include "headwise/optimizer.h"
#include "headwise/parameter_arena.h"
#include "random_values.h"

namespace headwise::testing {
namespace {

using Floats = std::vector<float>;

struct Loss {
  std::vector<std::int32_t> targets;
  std::int32_t classes;
  float smoothing = 0.0F;
  Floats d_logits;
  CrossEntropyResult result;

  Status Run(const Floats& logits, ThreadPool& pool) {
    const auto rows = static_cast<std::int32_t>(targets.size());
    Floats row_loss(targets.size(), NAN);
    std::vector<std::uint8_t> row_correct(targets.size());
    d_logits.assign(logits.size(), NAN);
    return CrossEntropy({rows, classes, smoothing, -1, logits.data(), targets.data(), row_loss.data(),
                         row_correct.data(), d_logits.data()},
                        result, pool);
  }
};

TEST(CrossEntropy, KnownNumbers) {
  ThreadPool pool(1);
  // Tokens 5 6 7 8 of ten: logits of 10 at the true next token, or at the current one.
  for (const bool next : {true, false}) {
    Loss loss{{6, 7, 8}, 10, 0.0F, {}, {}};
    Floats logits(30, 0.0F);
    for (std::size_t r = 0; r < 3; ++r) logits[r * 10 + 5 + r + (next ? 1 : 0)] = 10.0F;
    ASSERT_TRUE(loss.Run(logits, pool).ok());
    EXPECT_NEAR(loss.result.loss, next ? 0.000408516 : 10.000409, 1e-6);
    EXPECT_EQ(loss.result.correct, next ? 3 : 0);
  }
}

TEST(CrossEntropy, GradientsAgreeWithFiniteDifferences) {
  ThreadPool pool(2);
  for (const float smoothing : {0.0F, 0.1F}) {
    RandomValues random(2);
    Loss loss{{3, -1, 0, 6, -1}, 7, smoothing, {}, {}};
    Floats logits = random.Floats(5 * 7, -3.0F, 3.0F);
    ASSERT_TRUE(loss.Run(logits, pool).ok());
    EXPECT_EQ(loss.result.counted, 3);
    const Floats gradient = loss.d_logits;
    for (std::size_t c = 0; c < 7; ++c) EXPECT_EQ(gradient[7 + c], 0.0F);
    ExpectGradient(
        logits, gradient,
        [&] {
          EXPECT_TRUE(loss.Run(logits, pool).ok());
          return loss.result.loss;
        },
        "logits");
  }
}

TEST(CrossEntropy, BadTargetsAndNothingToCount) {
  ThreadPool pool(1);
  Loss loss{{3, 7}, 7, 0.0F, {}, {}};
  const Floats logits(14, 1.0F);
  EXPECT_STREQ(loss.Run(logits, pool).argument, "targets");
  loss.targets = {-1, -1};
  ASSERT_TRUE(loss.Run(logits, pool).ok());
  EXPECT_EQ(loss.result.loss, 0.0);
  EXPECT_EQ(loss.d_logits, Floats(14, 0.0F));
  loss.targets = {0, 1};
  Floats poisoned = logits;
  poisoned[12] = NAN;
  ASSERT_TRUE(loss.Run(poisoned, pool).ok());
  EXPECT_TRUE(std::isnan(loss.result.loss));
}

// Ten steps beside the published formulas in double.
TEST(Optimizer, FollowsItsFormula) {
  ThreadPool pool(2);
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    RandomValues random(9);
    constexpr std::size_t kCount = 20000;  // several blocks
    Floats p = random.Floats(kCount);
    Floats first(kCount, 0.0F);
    Floats second(kCount, 0.0F);
    std::vector<double> q(p.begin(), p.end());
    std::vector<double> m(kCount, 0.0);
    std::vector<double> v(kCount, 0.0);
    OptimizerStepArgs args;
    args.config.kind = kind;
    args.config.momentum = 0.9F;
    args.config.weight_decay = 0.01F;
    args.rate = 0.05F;
    args.count = kCount;
    args.parameters = p.data();
    args.first = first.data();
    args.second = second.data();
    for (args.step = 1; args.step <= 10; ++args.step) {
      const Floats gradients = random.Floats(kCount);
      args.gradients = gradients.data();
      ASSERT_TRUE(OptimizerStep(args, pool).ok());
      for (std::size_t i = 0; i < kCount; ++i) {
        if (kind == OptimizerKind::kAdamW) q[i] *= 1.0 - 0.05 * 0.01;
        const double g = gradients[i] + (kind == OptimizerKind::kAdamW ? 0.0 : 0.01 * q[i]);
        if (kind == OptimizerKind::kSgd) {
          m[i] = 0.9 * m[i] + g;
          q[i] -= 0.05 * m[i];
          continue;
        }
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const auto t = static_cast<double>(args.step);
        q[i] -= 0.05 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      }
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(p[i], q[i], kOptimizerTolerance) << i;
  }
}

TEST(Optimizer, RefusesNonsense) {
  ThreadPool pool(1);
  OptimizerStepArgs args;
  args.step = 0;
  EXPECT_STREQ(OptimizerStep(args, pool).argument, "step");
  args.step = 1;
  args.rate = NAN;
  EXPECT_STREQ(OptimizerStep(args, pool).argument, "rate");
  args.rate = 1.0F;
  args.config.beta2 = 1.0F;
  EXPECT_STREQ(OptimizerStep(args, pool).argument, "beta2");
}

TEST(Schedule, Rates) {
  Schedule original{ScheduleKind::kTransformer, 1.0, 4, 0, 64};
  EXPECT_NEAR(LearningRate(original, 1), 0.015625, 1e-12);
  EXPECT_NEAR(LearningRate(original, 4), 0.0625, 1e-12);
  EXPECT_NEAR(LearningRate(original, 16), 0.03125, 1e-12);
  EXPECT_EQ(LearningRate(original, 0), LearningRate(original, 1));
  original.warmup = 0;
  EXPECT_NEAR(LearningRate(original, 1), 0.125, 1e-12);
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    for (const std::int64_t warmup : {0, 3, 10}) {
      const Schedule schedule{kind, 0.5, warmup, 10, 1};
      for (std::int64_t t = 0; t < 10; ++t) {
        EXPECT_GT(LearningRate(schedule, t), 0.0);
        EXPECT_LE(LearningRate(schedule, t), 0.5);
      }
      EXPECT_NEAR(LearningRate(schedule, 20), kind == ScheduleKind::kConstant ? 0.5 : 0.0, 1e-12);
    }
  }
  EXPECT_NEAR(LearningRate({ScheduleKind::kCosine, 0.5, 10, 10, 1}, 10), 0.5, 1e-12);
}

TEST(GradientClip, ScalesAllByOneNorm) {
  ThreadPool one(1);
  ThreadPool three(3);
  RandomValues random(1);
  const Floats gradients = random.Floats(30000);
  double squares = 0.0;
  for (const float g : gradients) squares += static_cast<double>(g) * g;
  Floats results[2];
  for (int n = 0; n < 2; ++n) {
    results[n] = gradients;
    GradientClip clip;
    Job job;
    ASSERT_TRUE(clip.Prepare(results[n].data(), 30000, 2.0F, job).ok());
    job.Run(n == 0 ? one : three);
    EXPECT_NEAR(clip.norm(), std::sqrt(squares), 1e-9);
  }
  EXPECT_TRUE(SameBits(results[0], results[1]));
  EXPECT_NEAR(results[0][5], gradients[5] * 2.0 / std::sqrt(squares), 1e-6);
  Floats small = {0.3F, 0.4F};
  GradientClip clip;
  Job job;
  ASSERT_TRUE(clip.Prepare(small.data(), 2, 2.0F, job).ok());
  job.Run(one);
  EXPECT_EQ(small, (Floats{0.3F, 0.4F}));
  EXPECT_NEAR(clip.norm(), 0.5, 1e-7);
}

TEST(ParameterArena, OneBlock) {
  ParameterArena arena;
  std::int32_t a = -1;
  std::int32_t b = -1;
  const std::int32_t shape[] = {3, 7};
  ASSERT_TRUE(arena.Add("encoder.weight", shape, 2, &a).ok());
  ASSERT_TRUE(arena.Add("encoder.bias", shape, 1, &b).ok());
  EXPECT_STREQ(arena.Add("encoder.bias", shape, 1, &b).argument, "name");
  ASSERT_TRUE(arena.Allocate(2).ok());
  EXPECT_EQ(arena.Find("encoder.bias"), b);
  EXPECT_EQ(arena.Find("decoder.bias"), -1);
  EXPECT_EQ(arena.parameter(a).count, 21);
  EXPECT_EQ(arena.parameter(b).offset, 32);
  EXPECT_EQ(arena.floats(), 48);
  for (std::int64_t i = 0; i < 4 * arena.floats(); ++i) EXPECT_EQ(arena.values()[i], 0.0F);
  EXPECT_EQ(arena.gradient(b), arena.values() + 48 + 32);
  EXPECT_EQ(arena.moment(1), arena.values() + 144);
  for (int n = 0; n < 100; ++n) {
    ParameterArena many;
    std::int32_t index = 0;
    for (int i = 0; i < n; ++i) ASSERT_TRUE(many.Add(std::to_string(i).c_str(), shape, 0, &index).ok());
    EXPECT_EQ(many.size(), n);
  }
}

}  // namespace
}  // namespace headwise::testing
