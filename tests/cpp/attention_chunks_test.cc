// Tests: heads whose keys are packed chunk by chunk, with the rows' states kept in between: chunks, rounds, and what is carried
// from one to the next.
#include <gtest/gtest.h>

#include "attention/plan.h"
#include "attention_case.h"
#include "kernels/kernel_table.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr int kValues = 8192;  // so large that 2047 keys fill a chunk
constexpr int kKeys = 2200;

AttentionPlan PlanOf(const AttentionArgs& a) {
  const kernels::KernelTable& table = kernels::Kernels();
  return PlanAttention({a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.head_dim, a.value_dim},
                       {table.panel, table.row_tile, table.lanes});
}

AttentionCase Chunked(int heads, int queries) {
  AttentionCase c;
  c.Shape(1, heads, 1, queries, kKeys, 1, kValues);
  c.args.scale = 1.0F;
  c.Layout(true);
  RandomValues random(21);
  c.Fill(random, 4.0F);
  c.want_log_sum_exp = true;
  return c;
}

TEST(AttentionChunks, AgreeWithTheReference) {
  ThreadPool pool(2);
  for (int options = 0; options < 5; ++options) {
    AttentionCase c = Chunked(1, 13);
    ASSERT_GT(PlanOf(c.args).chunks, 1);
    if (options == 1) c.args.causal = 1;
    if (options == 2) c.want_weights = true;
    if (options == 3) {
      // Large scores in the second chunk alone: rows go over to natural units there. Multiples of 1/8, which are exact.
      for (float& x : c.q) x = std::round(x * 8.0F) / 8.0F;
      for (float& x : c.k) x = std::round(x * 8.0F) / 8.0F;
      c.k[2100] = 1000.0F;
      c.k[2150] = -3000.0F;
      c.want_weights = true;
    }
    if (options == 4) c.kv_lengths = {1000};  // the second chunk is seen by nobody
    const AttentionOutputs got = c.Fast(pool);
    const AttentionOutputs expected = c.Reference();
    EXPECT_TRUE(c.intact);
    EXPECT_LE(Distance(got.out, expected.out), kAttentionOptionsTolerance) << options;
    EXPECT_LE(Distance(got.weights, expected.weights), kAttentionOptionsTolerance) << options;
    EXPECT_LE(Distance(got.log_sum_exp, expected.log_sum_exp), kAttentionOptionsTolerance) << options;
  }
}

// Heads together, in two rounds and in slices, and each alone: the same bits.
TEST(AttentionChunks, RoundsAndSlicesChangeNoBit) {
  ThreadPool pool(2);
  constexpr int kHeads = 12;
  constexpr int kQueries = 20;
  const AttentionCase all = Chunked(kHeads, kQueries);
  const AttentionPlan plan = PlanOf(all.args);
  ASSERT_GT(plan.tasks, plan.round_tasks);
  const AttentionOutputs together = all.Outputs([&](const AttentionArgs& args) {
    AttentionForward forward;
    Job job;
    const Status status = forward.Prepare(args, pool, job);
    while (status.ok() && !job.Run(pool, 0.0)) continue;
    return status;
  });
  for (int h = 0; h < kHeads; h += 5) {
    AttentionCase one = Chunked(1, kQueries);
    one.q.assign(all.q.begin() + h * kQueries, all.q.begin() + (h + 1) * kQueries);
    one.k = all.k;
    one.v = all.v;
    const std::vector<float> out = one.Fast(pool).out;
    const auto begin = together.out.begin() + std::int64_t{h} * kQueries * kValues;
    EXPECT_TRUE(SameBits(out, std::vector<float>(begin, begin + std::int64_t{kQueries} * kValues))) << h;
  }
}

}  // namespace
}  // namespace headwise::testing
