// Tests: packed sequences against the reference: nothing of a neighbour is read or written, to the last row.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "attention_case.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

struct Packed {
  std::vector<std::int32_t> q_starts, k_starts, q_lengths, kv_lengths;
  std::int32_t rows = 0, keys = 0, longest_q = 0, longest_k = 0;

  void Add(std::int32_t l, std::int32_t s) {
    q_starts.push_back(rows);
    k_starts.push_back(keys);
    q_lengths.push_back(l);
    kv_lengths.push_back(s);
    rows += l;
    keys += s;
    longest_q = std::max(longest_q, l);
    longest_k = std::max(longest_k, s);
  }
};

TEST(PackedSequences, AgreeWithTheReference) {
  ThreadPool pool(3);
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    RandomValues random(seed);
    const std::int32_t most = seed % 3 == 0 ? 3 : 140;  // short ones take keys where they lie
    Packed packed;
    for (int n = random.Integer(1, 6); n > 0; --n) {
      packed.Add(random.Integer(0, most), random.Integer(0, 1) == 0 ? random.Integer(0, 300) : random.Integer(0, 9));
    }
    const std::int32_t heads = 4;
    const std::int32_t dim = random.Integer(1, 20);
    const std::int32_t value_dim = random.Integer(1, 20);
    // Of just the size: reading past the end is a sanitizer's business.
    const std::vector<float> q = random.Floats(std::int64_t{packed.rows} * heads * dim);
    const std::vector<float> k = random.Floats(std::int64_t{packed.keys} * 2 * dim);
    const std::vector<float> v = random.Floats(std::int64_t{packed.keys} * 2 * value_dim);
    AttentionArgs a;
    a.batch = static_cast<std::int32_t>(packed.q_starts.size());
    a.heads = heads;
    a.kv_heads = 2;
    a.queries = packed.longest_q;
    a.keys = packed.longest_k;
    a.head_dim = dim;
    a.value_dim = value_dim;
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.q_strides = {0, dim, heads * dim};
    a.k_strides = {0, dim, 2 * dim};
    a.v_strides = {0, value_dim, 2 * value_dim};
    a.out_strides = {0, value_dim, heads * value_dim};
    a.log_sum_exp_strides = {0, packed.rows, 1};
    a.q_starts = packed.q_starts.data();
    a.k_starts = packed.k_starts.data();
    a.q_lengths = packed.q_lengths.data();
    a.kv_lengths = packed.kv_lengths.data();
    a.causal = random.Integer(0, 1);
    if (random.Integer(0, 1) == 1) a.window_left = random.Integer(0, 50);
    Guarded out[2] = {Guarded(std::int64_t{packed.rows} * heads * value_dim),
                      Guarded(std::int64_t{packed.rows} * heads * value_dim)};
    Guarded lse[2] = {Guarded(std::int64_t{packed.rows} * heads), Guarded(std::int64_t{packed.rows} * heads)};
    for (int n = 0; n < 2; ++n) {
      a.out = out[n].data();
      a.log_sum_exp = lse[n].data();
      ASSERT_TRUE((n == 0 ? Attention(a, pool) : AttentionReference(a)).ok());
      ASSERT_TRUE(out[n].MarginsIntact() && lse[n].MarginsIntact()) << seed;
    }
    ASSERT_LE(Distance(out[0].Values(), out[1].Values()), kAttentionTolerance) << seed;
    ASSERT_LE(Distance(lse[0].Values(), lse[1].Values()), kAttentionTolerance) << seed;
    a.weights = out[0].data();
    EXPECT_EQ(Attention(a, pool).code, StatusCode::kInvalidValue);
  }
}

}  // namespace
}  // namespace headwise::testing
