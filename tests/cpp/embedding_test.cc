// Tests: embedding lookup.
#include "headwise/embedding.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "guarded.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;

TEST(Embedding, CopiesRows) {
  ThreadPool pool(2);
  const std::vector<float> table = {0, 1, 2, 10, 11, 12, 20, 21, 22};
  std::vector<std::int32_t> ids;
  std::vector<float> expected;
  for (std::int32_t i = 0; i < 100; ++i) {
    ids.push_back((i * 5) % 3);
    for (std::int32_t c = 0; c < 3; ++c) expected.push_back(static_cast<float>(ids.back() * 10 + c));
  }
  Guarded y(300);
  ASSERT_TRUE(Embedding({100, 3, 3, ids.data(), table.data(), y.data()}, pool).ok());
  EXPECT_EQ(y.Values(), expected);
  EXPECT_TRUE(y.MarginsIntact());
}

TEST(Embedding, RefusesIdsOutsideTheTableBeforeWritingAnything) {
  ThreadPool pool(1);
  const std::vector<float> table = {1, 2};
  for (const std::int32_t bad : {-1, 2, 2147483647}) {
    const std::vector<std::int32_t> ids = {0, 1, bad};
    Guarded y(3);
    const Status status = Embedding({3, 2, 1, ids.data(), table.data(), y.data()}, pool);
    EXPECT_EQ(status.code, StatusCode::kInvalidValue);
    EXPECT_STREQ(status.argument, "ids");
    EXPECT_TRUE(Guarded::Poisoned(y[0]));
  }
}

TEST(Embedding, AcceptsSizesOfZero) {
  ThreadPool pool(1);
  const std::vector<std::int32_t> ids = {0};
  EXPECT_TRUE(Embedding({0, 0, 4, nullptr, nullptr, nullptr}, pool).ok());
  EXPECT_TRUE(Embedding({1, 1, 0, ids.data(), nullptr, nullptr}, pool).ok());
  EXPECT_EQ(Embedding({1, 0, 4, ids.data(), nullptr, nullptr}, pool).code, StatusCode::kInvalidValue);
  EXPECT_EQ(Embedding({-1, 1, 1, ids.data(), nullptr, nullptr}, pool).code, StatusCode::kInvalidShape);
}

}  // namespace
}  // namespace headwise
