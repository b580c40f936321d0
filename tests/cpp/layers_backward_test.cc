// Tests: norms, activations, linear, embedding and convolution: known numbers, gradients against finite differences, and bits
// that do not depend on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "finite_differences.h"
#include "guarded.h"
#include "headwise/activation.h"
#include "headwise/batch_norm.h"
#include "headwise/convolution.h"
#include "headwise/convolution_backward.h"
#include "headwise/embedding.h"
#include "headwise/embedding_backward.h"
#include "headwise/linear.h"
#include "headwise/linear_backward.h"
#include "headwise/norm.h"
#include "random_values.h"

namespace headwise::testing {
namespace {

using Floats = std::vector<float>;

Floats Zeros(std::size_t count) { return Floats(count, 0.0F); }

struct NormCase {
  NormKind kind;
  std::int32_t rows, width;
  Floats x, gain, shift;
  float epsilon = 1e-5F;
  Floats mean, inverse;

  Floats Run(ThreadPool& pool) {
    Floats y = Zeros(x.size());
    mean = Zeros(static_cast<std::size_t>(rows));
    inverse = mean;
    NormArgs args{kind,    rows,     width,   epsilon, x.data(), gain.empty() ? nullptr : gain.data(),
                  nullptr, y.data(), nullptr, nullptr};
    if (!shift.empty()) args.shift = shift.data();
    if (kind == NormKind::kLayer) args.mean = mean.data();
    args.inverse = inverse.data();
    EXPECT_TRUE(Norm(args, pool).ok());
    return y;
  }
};

TEST(Norm, KnownNumbers) {
  ThreadPool pool(1);
  NormCase c{NormKind::kLayer, 1, 3, {2, 0, 0}, {}, {}, 0.0F, {}, {}};
  EXPECT_NEAR(c.Run(pool)[0], 1.4142136, 1e-6);  // divided by n, not n - 1
  c.x = {3, 3, 3};
  EXPECT_EQ(c.Run(pool), Zeros(3));
  c = {NormKind::kLayer, 1, 2, {1e-3F, -1e-3F}, {}, {}, 1e-5F, {}, {}};
  EXPECT_NEAR(c.Run(pool)[0], 0.3015113, 1e-6);  // epsilon inside the root
  c = {NormKind::kLayer, 1, 2, {10000.0F, 10000.5F}, {}, {}, 1e-12F, {}, {}};
  EXPECT_NEAR(c.Run(pool)[0], -1.0, 1e-3);  // two passes
  c = {NormKind::kRms, 1, 2, {3, 4}, {1, 2}, {}, 0.0F, {}, {}};
  EXPECT_NEAR(c.Run(pool)[1], 8 / std::sqrt(12.5), 1e-6);
}

TEST(Norm, GradientsAgreeWithFiniteDifferences) {
  ThreadPool pool(2);
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    for (const bool affine : {false, true}) {
      RandomValues random(7);
      NormCase c{kind, 5, 37, random.Floats(5 * 37), {}, {}, 1e-5F, {}, {}};
      if (affine) c.gain = random.Floats(37);
      if (affine && kind == NormKind::kLayer) c.shift = random.Floats(37);
      const Floats d_y = random.Floats(5 * 37);
      c.Run(pool);
      Guarded d_x(5 * 37);
      Guarded d_gain(37);
      Guarded d_shift(37);
      NormBackwardArgs args;
      args.kind = kind;
      args.rows = 5;
      args.width = 37;
      args.x = c.x.data();
      args.gain = affine ? c.gain.data() : nullptr;
      args.mean = kind == NormKind::kLayer ? c.mean.data() : nullptr;
      args.inverse = c.inverse.data();
      args.d_y = d_y.data();
      args.d_x = d_x.data();
      args.d_gain = d_gain.data();
      args.d_shift = d_shift.data();
      ASSERT_TRUE(NormBackward(args, pool).ok());
      EXPECT_TRUE(d_x.MarginsIntact() && d_gain.MarginsIntact() && d_shift.MarginsIntact());
      const auto loss = [&] { return WeightedSum(c.Run(pool), d_y); };
      ExpectGradient(c.x, d_x.Values(), loss, "x");
      if (affine) ExpectGradient(c.gain, d_gain.Values(), loss, "gain");
      if (!c.shift.empty()) ExpectGradient(c.shift, d_shift.Values(), loss, "shift");
    }
  }
}

TEST(BatchNorm, GradientsAndRunningMoments) {
  ThreadPool pool(2);
  for (const bool training : {true, false}) {
    RandomValues random(8);
    Floats x = random.Floats(6 * 35);
    Floats gain = random.Floats(35);
    Floats shift = random.Floats(35);
    const Floats d_y = random.Floats(6 * 35);
    Floats mean = Zeros(35);
    Floats inverse = Zeros(35);
    Floats running_mean;
    Floats running_variance;
    const auto run = [&] {
      Floats y = Zeros(x.size());
      running_mean.assign(35, 0.25F);
      running_variance.assign(35, 2.0F);
      BatchNormArgs args;
      args.rows = 6;
      args.width = 35;
      args.training = training;
      args.x = x.data();
      args.gain = gain.data();
      args.shift = shift.data();
      args.running_mean = running_mean.data();
      args.running_variance = running_variance.data();
      args.y = y.data();
      args.mean = mean.data();
      args.inverse = inverse.data();
      EXPECT_TRUE(BatchNorm(args, pool).ok());
      return y;
    };
    run();
    if (training) {
      double sum = 0.0;
      for (std::size_t r = 0; r < 6; ++r) sum += x[r * 35 + 3] / 6.0;
      double squares = 0.0;
      for (std::size_t r = 0; r < 6; ++r) squares += (x[r * 35 + 3] - sum) * (x[r * 35 + 3] - sum) / 5.0;
      EXPECT_NEAR(running_mean[3], 0.9 * 0.25 + 0.1 * sum, 1e-6);
      EXPECT_NEAR(running_variance[3], 0.9 * 2.0 + 0.1 * squares, 1e-6);
    } else {
      EXPECT_EQ(running_mean[3], 0.25F);
    }
    BatchNormBackwardArgs args;
    Guarded d_x(6 * 35);
    Guarded d_gain(35);
    Guarded d_shift(35);
    args.rows = 6;
    args.width = 35;
    args.training = training;
    args.x = x.data();
    args.gain = gain.data();
    args.mean = mean.data();
    args.inverse = inverse.data();
    args.d_y = d_y.data();
    args.d_x = d_x.data();
    args.d_gain = d_gain.data();
    args.d_shift = d_shift.data();
    ASSERT_TRUE(BatchNormBackward(args, pool).ok());
    const auto loss = [&] { return WeightedSum(run(), d_y); };
    ExpectGradient(x, d_x.Values(), loss, "x", 5 * kFiniteDifferenceTolerance, 0x1p-7F);
    ExpectGradient(gain, d_gain.Values(), loss, "gain");
    ExpectGradient(shift, d_shift.Values(), loss, "shift");
  }
}

TEST(Activation, ValuesAndGradients) {
  ThreadPool pool(2);
  const std::vector<ActivationKind> kinds = {ActivationKind::kRelu, ActivationKind::kGelu, ActivationKind::kGeluTanh};
  // torch.nn.functional.gelu(1), exact and by tanh.
  const double of_one[] = {1.0, 0.8413447, 0.8411920};
  for (std::size_t n = 0; n < kinds.size(); ++n) {
    RandomValues random(3);
    Floats x = random.Floats(300, -4.0F, 4.0F);
    for (float& value : x) value = std::fabs(value) < 0.1F ? 0.5F : value;  // away from ReLU's kink
    x[0] = 1.0F;
    const Floats d_y = random.Floats(300);
    const auto run = [&] {
      Floats y = Zeros(300);
      EXPECT_TRUE(Activation({kinds[n], 300, x.data(), y.data()}, pool).ok());
      return y;
    };
    EXPECT_NEAR(run()[0], of_one[n], 1e-6);
    Floats d_x = d_y;  // in place
    ASSERT_TRUE(ActivationBackward({kinds[n], 300, x.data(), d_x.data(), d_x.data()}, pool).ok());
    ExpectGradient(x, d_x, [&] { return WeightedSum(run(), d_y); }, "x");
  }
}

TEST(Linear, GradientsAgreeWithFiniteDifferences) {
  ThreadPool pool(2);
  RandomValues random(4);
  Floats x = random.Floats(9 * 7);
  Floats kernel = random.Floats(7 * 19);
  Floats bias = random.Floats(19);
  const Floats d_y = random.Floats(9 * 19);
  const auto loss = [&] {
    Floats y = Zeros(9 * 19);
    EXPECT_TRUE(Linear({9, 7, 19, x.data(), kernel.data(), bias.data(), y.data()}, pool).ok());
    return WeightedSum(y, d_y);
  };
  for (const bool accumulate : {false, true}) {
    Floats d_x(9 * 7, accumulate ? 2.0F : NAN);
    Floats d_kernel(7 * 19, accumulate ? 2.0F : NAN);
    Floats d_bias(19, accumulate ? 2.0F : NAN);
    LinearBackwardArgs args{
        9,          7,         19, x.data(), kernel.data(), d_y.data(), d_x.data(), d_kernel.data(), d_bias.data(),
        accumulate, accumulate};
    ASSERT_TRUE(RunLinearBackward(args, pool).ok());
    for (Floats* gradient : {&d_x, &d_kernel, &d_bias}) {
      for (float& value : *gradient) value -= accumulate ? 2.0F : 0.0F;
    }
    ExpectGradient(x, d_x, loss, "x");
    ExpectGradient(kernel, d_kernel, loss, "kernel");
    ExpectGradient(bias, d_bias, loss, "bias");
  }
}

TEST(Linear, BackwardBitsDoNotDependOnThreads) {
  ThreadPool one(1);
  ThreadPool three(3);
  RandomValues random(5);
  const Floats x = random.Floats(300 * 130);
  const Floats kernel = random.Floats(130 * 70);
  const Floats d_y = random.Floats(300 * 70);
  Floats results[2][3];
  for (int n = 0; n < 2; ++n) {
    results[n][0] = Zeros(300 * 130);
    results[n][1] = Zeros(130 * 70);
    results[n][2] = Zeros(70);
    ASSERT_TRUE(RunLinearBackward({300, 130, 70, x.data(), kernel.data(), d_y.data(), results[n][0].data(),
                                   results[n][1].data(), results[n][2].data(), false, false},
                                  n == 0 ? one : three)
                    .ok());
  }
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(SameBits(results[0][n], results[1][n]));
}

TEST(Embedding, GradientsAddUpAndPaddingGivesNothing) {
  ThreadPool pool(2);
  const std::vector<std::int32_t> ids = {2, 0, 2, 1};
  RandomValues random(6);
  const Floats d_y = random.Floats(4 * 40);
  Floats d_table(5 * 40, NAN);
  EmbeddingBackwardArgs args;
  args.rows = 4;
  args.vocabulary = 5;
  args.width = 40;
  args.ids = ids.data();
  args.padding = 1;
  args.scale = 2.0F;
  args.d_y = d_y.data();
  args.d_table = d_table.data();
  ASSERT_TRUE(EmbeddingBackward(args, pool).ok());
  for (std::size_t e = 0; e < 40; ++e) {
    EXPECT_FLOAT_EQ(d_table[2 * 40 + e], 2.0F * d_y[e] + 2.0F * d_y[80 + e]);
    EXPECT_EQ(d_table[40 + e], 0.0F);
    EXPECT_EQ(d_table[4 * 40 + e], 0.0F);
  }
  const std::vector<std::int32_t> wrong = {2, 0, 5, 1};
  args.ids = wrong.data();
  EXPECT_STREQ(EmbeddingBackward(args, pool).argument, "ids");
}

TEST(Convolution, GradientsAgreeWithFiniteDifferences) {
  ThreadPool pool(2);
  for (const std::int32_t kernel_size : {1, 2, 3, 9}) {
    for (const std::int32_t causal : {0, 1}) {
      RandomValues random(static_cast<std::uint32_t>(kernel_size));
      const auto taps = static_cast<std::size_t>(kernel_size);
      Floats x = random.Floats(2 * 6 * 3);
      Floats kernel = random.Floats(kernel_size * 3 * 5);
      Floats bias = random.Floats(5);
      const Floats d_y = random.Floats(2 * 6 * 5);
      Floats d_x(x.size(), NAN);
      Floats d_kernel(taps * 15, NAN);
      Floats d_bias(5, NAN);
      ConvolutionBackwardArgs args{2,
                                   6,
                                   3,
                                   5,
                                   kernel_size,
                                   causal,
                                   x.data(),
                                   kernel.data(),
                                   d_y.data(),
                                   d_x.data(),
                                   d_kernel.data(),
                                   d_bias.data(),
                                   false};
      ASSERT_TRUE(RunConvolutionBackward(args, pool).ok());
      const auto loss = [&] {
        Floats y = Zeros(2 * 6 * 5);
        EXPECT_TRUE(
            Convolution({2, 6, 3, 5, kernel_size, causal, x.data(), kernel.data(), bias.data(), y.data()}, pool).ok());
        return WeightedSum(y, d_y);
      };
      ExpectGradient(x, d_x, loss, "x");
      ExpectGradient(kernel, d_kernel, loss, "kernel");
      ExpectGradient(bias, d_bias, loss, "bias");
    }
  }
}

TEST(Convolution, GradientsOfManyRowsAreBitIdenticalForAnyNumberOfThreadsAndCanBeAdded) {
  RandomValues random(11);
  const Floats x = random.Floats(3 * 70 * 20);
  const Floats kernel = random.Floats(4 * 20 * 30);
  const Floats d_y = random.Floats(3 * 70 * 30);
  Floats results[3][3];
  for (const int n : {0, 1, 2}) {
    ThreadPool pool(n == 0 ? 1 : 3);
    const bool accumulate = n == 2;
    const float start = accumulate ? 1.0F : NAN;
    results[n][0].assign(x.size(), start);
    results[n][1].assign(kernel.size(), start);
    results[n][2].assign(30, start);
    ConvolutionBackwardArgs args{3,
                                 70,
                                 20,
                                 30,
                                 4,
                                 1,
                                 x.data(),
                                 kernel.data(),
                                 d_y.data(),
                                 results[n][0].data(),
                                 results[n][1].data(),
                                 results[n][2].data(),
                                 accumulate,
                                 accumulate};
    ASSERT_TRUE(RunConvolutionBackward(args, pool).ok());
  }
  for (int n = 0; n < 3; ++n) {
    EXPECT_TRUE(SameBits(results[0][n], results[1][n]));
    for (std::size_t i = 0; i < results[0][n].size(); ++i) {
      ASSERT_NEAR(results[2][n][i], results[0][n][i] + 1.0F, 1e-4F);
    }
  }
}

TEST(Convolution, GradientsOfASequenceKnowNothingOfTheOthers) {
  ThreadPool pool(1);
  RandomValues random(12);
  const Floats kernel = random.Floats(3 * 4 * 5);
  Floats d_y = random.Floats(2 * 6 * 5);
  for (std::size_t i = 6 * 5; i < d_y.size(); ++i) d_y[i] = NAN;
  Floats d_x(2 * 6 * 4);
  ConvolutionBackwardArgs args{2, 6, 4, 5, 3, 0, nullptr, kernel.data(), d_y.data(), d_x.data(), nullptr, nullptr};
  ASSERT_TRUE(RunConvolutionBackward(args, pool).ok());
  for (std::size_t i = 0; i < d_x.size(); ++i) EXPECT_EQ(std::isnan(d_x[i]), i >= 6 * 4) << i;
}

TEST(Convolution, GradientsOfNothingAndBadSizes) {
  ThreadPool pool(1);
  const float one = 1.0F;
  float d_kernel = NAN;
  float d_bias = NAN;
  EXPECT_TRUE(
      RunConvolutionBackward({0, 3, 1, 1, 1, 0, nullptr, &one, nullptr, nullptr, &d_kernel, &d_bias}, pool).ok());
  EXPECT_EQ(d_kernel, 0.0F);
  EXPECT_EQ(d_bias, 0.0F);
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_STREQ(RunConvolutionBackward({1, 1, 2, 1, kMax, 0, &one, &one, &one, nullptr, &d_kernel}, pool).argument,
               "kernel");
  EXPECT_STREQ(RunConvolutionBackward({2, kMax, 1, 1, 1, 0, &one, &one, &one, nullptr, &d_kernel}, pool).argument, "x");
  EXPECT_STREQ(RunConvolutionBackward({1, 1, 1, 1, 1, 0, nullptr, &one, &one, nullptr, &d_kernel}, pool).argument, "x");
}

}  // namespace
}  // namespace headwise::testing
