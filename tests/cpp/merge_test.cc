// Tests: merging parts over disjoint keys.
#include "headwise/merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention_case.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

TEST(Merge, PartsMakeTheWhole) {
  ThreadPool pool(3);
  RandomValues random(1);
  AttentionCase whole;
  whole.Shape(2, 4, 2, 70, 90, 8, 5);
  whole.Layout(false);
  whole.Fill(random);
  whole.want_log_sum_exp = true;
  const AttentionOutputs expected = whole.Fast(pool);
  const std::vector<std::int32_t> bounds = {0, 0, 1, 50, 90};  // the first part sees no key
  std::vector<float> outputs;
  std::vector<float> log_sum_exps;
  for (std::size_t n = 0; n + 1 < bounds.size(); ++n) {
    AttentionCase part = whole;
    for (std::int32_t i = 0; i < 2 * 90; ++i) {
      part.padding.push_back(i % 90 >= bounds[n] && i % 90 < bounds[n + 1] ? 1 : 0);
    }
    const AttentionOutputs got = part.Fast(pool);
    outputs.insert(outputs.end(), got.out.begin(), got.out.end());
    log_sum_exps.insert(log_sum_exps.end(), got.log_sum_exp.begin(), got.log_sum_exp.end());
  }
  // What a part without a key holds does not matter.
  std::fill_n(outputs.begin(), expected.out.size(), std::numeric_limits<float>::quiet_NaN());
  Guarded out(static_cast<std::int64_t>(expected.out.size()));
  Guarded lse(static_cast<std::int64_t>(expected.log_sum_exp.size()));
  MergeArgs args;
  args.parts = 4;
  args.batch = 2;
  args.heads = 4;
  args.rows = 70;
  args.size = 5;
  args.outputs = outputs.data();
  args.log_sum_exps = log_sum_exps.data();
  args.out = out.data();
  args.log_sum_exp = lse.data();
  args.strides = whole.args.out_strides;
  ASSERT_TRUE(Merge(args, pool).ok());
  EXPECT_TRUE(out.MarginsIntact() && lse.MarginsIntact());
  EXPECT_LE(Distance(out.Values(), expected.out), kAttentionTolerance);
  EXPECT_LE(Distance(lse.Values(), expected.log_sum_exp), kAttentionTolerance);

  args.parts = 1;
  ASSERT_TRUE(Merge(args, pool).ok());
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(lse[0], -std::numeric_limits<float>::infinity());
  args.parts = 0;
  EXPECT_EQ(Merge(args, pool).code, StatusCode::kInvalidShape);
}

}  // namespace
}  // namespace headwise::testing
