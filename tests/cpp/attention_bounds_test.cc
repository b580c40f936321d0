// Tests: the softmax that keeps a row's maximum where a bound of the scores allows it, at and beyond the bound.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "attention_case.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr int kQueries = 61;  // tiled, the last rows alone in their tile
constexpr int kKeys = 400;    // three whole blocks of keys and a rest
constexpr int kSize = 8;

// Queries of ones over keys whose coordinates are all size(j): scores of 8 size(j).
AttentionCase Keys(const std::function<float(int)>& size) {
  AttentionCase c;
  c.Shape(1, 1, 1, kQueries, kKeys, kSize, kSize);
  c.args.scale = 1.0F;
  c.Layout(true);
  RandomValues random(7);
  c.Fill(random);
  c.q.assign(c.q.size(), 1.0F);
  for (int j = 0; j < kKeys; ++j) {
    for (int d = 0; d < kSize; ++d) c.k[static_cast<std::size_t>(j * kSize + d)] = size(j);
  }
  c.want_log_sum_exp = true;
  c.want_weights = true;
  return c;
}

void ExpectReference(const AttentionCase& c) {
  ThreadPool pool(1);
  const AttentionOutputs got = c.Fast(pool);
  const AttentionOutputs expected = c.Reference();
  EXPECT_LE(Distance(got.out, expected.out), kAttentionTolerance);
  EXPECT_LE(Distance(got.weights, expected.weights), kAttentionTolerance);
  EXPECT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionTolerance);
}

// From far below the bound to far beyond it, between blocks and within one; natural scores, so 63 ln 2 = 43.7.
TEST(AttentionBounds, AMaximumThatGrowsLaterIsTakenIn) {
  for (const float rise : {0.01F, 1.0F, 20.0F, 43.0F, 44.0F, 60.0F, 88.0F, 91.0F, 120.0F, 200.0F, 1e4F, 1e20F}) {
    for (const int from : {1, 127, 128, 200, 399}) {
      SCOPED_TRACE(::testing::Message() << "rise " << rise << " from key " << from);
      ExpectReference(Keys([&](int j) { return j < from ? 0.0F : rise / kSize; }));
      ExpectReference(Keys([&](int j) { return j < from ? 0.0F : -rise / kSize; }));
      ExpectReference(Keys([&](int j) { return (j < from ? -0.5F : 0.5F) * rise / kSize; }));
      ExpectReference(Keys([&](int j) { return (j < from ? 0.5F : -0.5F) * rise / kSize; }));
    }
  }
}

// Under a maximum of 0 the later keys weigh 2^62 each.
TEST(AttentionBounds, LargeValuesDoNotOverflow) {
  for (const float value : {1e9F, 1e12F, 1e25F, 1e35F}) {
    AttentionCase c = Keys([](int j) { return j < 128 ? 0.0F : 43.0F / kSize; });
    for (float& x : c.v) x = value;
    c.want_weights = false;
    ThreadPool pool(1);
    for (const float x : c.Fast(pool).out) ASSERT_NEAR(x / value, 1.0F, kAttentionTolerance) << value;
  }
}

TEST(AttentionBounds, KeysAndQueriesThatAreNoNumbersFollowTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
    AttentionCase keys = Keys([&](int j) { return j == 300 ? poison : 0.1F; });
    ExpectReference(keys);
    AttentionCase queries = Keys([](int j) { return 0.001F * static_cast<float>(j); });
    queries.q[5 * kSize] = poison;
    ExpectReference(queries);
  }
}

}  // namespace
}  // namespace headwise::testing
