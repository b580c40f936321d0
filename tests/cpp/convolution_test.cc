// Tests: convolution over the sequence against its definition in double.
#include "headwise/convolution.h"

#include <gtest/gtest.h>

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

// Within the bound of as many roundings as there are terms, and a few for the blocks.
void ExpectConvolution(const ConvolutionArgs& a, const Guarded& y) {
  const std::int32_t left = a.causal != 0 ? a.kernel_size - 1 : (a.kernel_size - 1) / 2;
  for (std::int32_t b = 0; b < a.batch; ++b) {
    for (std::int32_t i = 0; i < a.length; ++i) {
      for (std::int32_t o = 0; o < a.out; ++o) {
        double sum = a.bias == nullptr ? 0.0F : a.bias[o];
        double magnitude = std::fabs(sum);
        for (std::int32_t t = 0; t < a.kernel_size; ++t) {
          const std::int32_t from = i + t - left;
          if (from < 0 || from >= a.length) continue;
          for (std::int32_t c = 0; c < a.in; ++c) {
            const double term =
                double{a.x[(b * a.length + from) * a.in + c]} * double{a.kernel[(t * a.in + c) * a.out + o]};
            sum += term;
            magnitude += std::fabs(term);
          }
        }
        const double bound = (2.0 * a.kernel_size * a.in + 2) * 0x1p-24 * magnitude;
        ASSERT_NEAR(y[(b * a.length + i) * a.out + o], sum, bound) << b << ", " << i << ", " << o;
      }
    }
  }
  EXPECT_TRUE(y.MarginsIntact());
}

TEST(Convolution, PadsLikeKeras) {
  ThreadPool pool(1);
  const std::vector<float> x = {1, 10, 100, 1000};
  const std::vector<float> three = {1, 2, 3};
  const std::vector<float> two = {1, 2};
  Guarded y(4);
  ConvolutionArgs args = {1, 4, 1, 1, 3, 0, x.data(), three.data(), nullptr, y.data()};
  ASSERT_TRUE(Convolution(args, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{32, 321, 3210, 2100}));
  args.causal = 1;
  ASSERT_TRUE(Convolution(args, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{3, 32, 321, 3210}));
  args.kernel_size = 2;  // the larger part of an odd number of padding rows is on the right
  args.kernel = two.data();
  args.causal = 0;
  ASSERT_TRUE(Convolution(args, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{21, 210, 2100, 1000}));
}

TEST(Convolution, MatchesTheDefinition) {
  ThreadPool pool(2);
  for (const std::int32_t kernel_size : {1, 2, 3, 4, 5, 30}) {
    for (const std::int32_t causal : {0, 1}) {
      for (const std::int32_t length : {1, 2, 7, 53}) {
        RandomValues random(static_cast<std::uint32_t>(kernel_size * 100 + length));
        const std::int32_t in = 5;
        const std::int32_t out = 11;
        const std::vector<float> x = random.Floats(3 * length * in);
        const std::vector<float> kernel = random.Floats(kernel_size * in * out);
        const std::vector<float> bias = random.Floats(out);
        Guarded y(3 * length * out);
        const ConvolutionArgs args = {3,        length,        in,          out,     kernel_size, causal,
                                      x.data(), kernel.data(), bias.data(), y.data()};
        ASSERT_TRUE(Convolution(args, pool).ok());
        ExpectConvolution(args, y);
      }
    }
  }
}

TEST(Convolution, SequencesOfABatchNeverMix) {
  ThreadPool pool(1);
  RandomValues random(3);
  std::vector<float> x = random.Floats(2 * 9 * 4);
  const std::vector<float> kernel = random.Floats(5 * 4 * 6);
  Guarded before(2 * 9 * 6);
  Guarded after(2 * 9 * 6);
  ASSERT_TRUE(Convolution({2, 9, 4, 6, 5, 0, x.data(), kernel.data(), nullptr, before.data()}, pool).ok());
  for (std::size_t i = 9 * 4; i < x.size(); ++i) x[i] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(Convolution({2, 9, 4, 6, 5, 0, x.data(), kernel.data(), nullptr, after.data()}, pool).ok());
  for (std::size_t i = 0; i < 9 * 6; ++i) {
    EXPECT_EQ(before[i], after[i]);
    EXPECT_TRUE(std::isnan(after[9 * 6 + i]));
  }
}

TEST(Convolution, IsBitIdenticalForAnyNumberOfThreads) {
  RandomValues random(17);
  const std::vector<float> x = random.Floats(2 * 101 * 40);
  const std::vector<float> kernel = random.Floats(3 * 40 * 50);
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    Guarded y(2 * 101 * 50);
    ASSERT_TRUE(Convolution({2, 101, 40, 50, 3, 0, x.data(), kernel.data(), nullptr, y.data()}, pool).ok());
    if (threads == 1) expected = y.Values();
    EXPECT_TRUE(SameBits(y.Values(), expected)) << threads;
  }
}

TEST(Convolution, AcceptsSizesOfZeroAndReportsBadOnes) {
  ThreadPool pool(1);
  const float one = 1.0F;
  float y = 5.0F;
  EXPECT_TRUE(Convolution({0, 3, 1, 1, 1, 0, nullptr, &one, nullptr, nullptr}, pool).ok());
  EXPECT_TRUE(Convolution({3, 0, 1, 1, 1, 0, nullptr, &one, nullptr, nullptr}, pool).ok());
  EXPECT_TRUE(Convolution({1, 1, 0, 1, 4, 0, nullptr, nullptr, &one, &y}, pool).ok());
  EXPECT_EQ(y, 1.0F);
  EXPECT_EQ(Convolution({1, 1, 1, 1, 0, 0, &one, &one, nullptr, &y}, pool).code, StatusCode::kInvalidShape);
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(Convolution({1, 1, kMax, 1, kMax, 0, &one, &one, nullptr, &y}, pool).code, StatusCode::kInvalidShape);
  EXPECT_EQ(Convolution({1, 1, kMax, kMax, 1, 0, &one, &one, nullptr, &y}, pool).code, StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace headwise
