// Tests: the dense layer.
#include "headwise/linear.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "guarded.h"
#include "random_values.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::RandomValues;

TEST(Linear, ComputesByHand) {
  ThreadPool pool(1);
  const std::vector<float> x = {1, 2, 3, 4};             // [2, 2]
  const std::vector<float> kernel = {1, 0, 2, 0, 1, 3};  // [2, 3]
  const std::vector<float> bias = {10, 20, 30};
  Guarded y(6);
  LinearArgs args = {2, 2, 3, x.data(), kernel.data(), bias.data(), y.data()};
  ASSERT_TRUE(Linear(args, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{11, 22, 38, 13, 24, 48}));
  args.bias = nullptr;
  ASSERT_TRUE(Linear(args, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{1, 2, 8, 3, 4, 18}));
  EXPECT_TRUE(y.MarginsIntact());
}

TEST(Linear, AcceptsSizesOfZero) {
  ThreadPool pool(2);
  const std::vector<float> bias = {7, 8};
  Guarded y(4);
  ASSERT_TRUE(Linear({2, 0, 2, nullptr, nullptr, bias.data(), y.data()}, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{7, 8, 7, 8}));
  ASSERT_TRUE(Linear({2, 0, 2, nullptr, nullptr, nullptr, y.data()}, pool).ok());
  EXPECT_EQ(y.Values(), (std::vector<float>{0, 0, 0, 0}));
  const float kernel[2] = {1, 2};
  EXPECT_TRUE(Linear({0, 1, 2, nullptr, kernel, bias.data(), nullptr}, pool).ok());
  EXPECT_TRUE(Linear({2, 1, 0, bias.data(), nullptr, nullptr, nullptr}, pool).ok());
}

TEST(Linear, ReportsBadShapesAndMemory) {
  ThreadPool pool(1);
  const float one = 1.0F;
  float y = 0.0F;
  EXPECT_EQ(Linear({-1, 1, 1, &one, &one, nullptr, &y}, pool).code, StatusCode::kInvalidShape);
  EXPECT_EQ(Linear({1, -1, 1, &one, &one, nullptr, &y}, pool).code, StatusCode::kInvalidShape);
  EXPECT_STREQ(Linear({1, 1, 1, nullptr, &one, nullptr, &y}, pool).argument, "x");
  EXPECT_STREQ(Linear({1, 1, 1, &one, nullptr, nullptr, &y}, pool).argument, "kernel");
  EXPECT_STREQ(Linear({1, 1, 1, &one, &one, nullptr, nullptr}, pool).argument, "y");
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(Linear({1, kMax, kMax, &one, &one, nullptr, &y}, pool).code, StatusCode::kOutOfMemory);
}

TEST(Linear, RunsInSlices) {
  RandomValues random(5);
  const std::vector<float> x = random.Floats(200 * 64);
  const std::vector<float> kernel = random.Floats(64 * 64);
  Guarded whole(200 * 64);
  Guarded sliced(200 * 64);
  ThreadPool pool(2);
  ASSERT_TRUE(Linear({200, 64, 64, x.data(), kernel.data(), nullptr, whole.data()}, pool).ok());
  LinearForward forward;
  Job job;
  ASSERT_TRUE(forward.Prepare({200, 64, 64, x.data(), kernel.data(), nullptr, sliced.data()}, job).ok());
  while (!job.Run(pool, 0.0)) {
  }
  EXPECT_EQ(whole.Values(), sliced.Values());
}

}  // namespace
}  // namespace headwise
