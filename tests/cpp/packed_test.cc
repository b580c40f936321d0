// Tests: packed sequences against the reference: nothing of a neighbour is read or written, to the last row.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "attention_case.h"
#include "headwise/attention_backward.h"
#include "seeds.h"
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

// A call over packed sequences and all that it points at, of just the size: reading past the end is a sanitizer's business.
struct PackedCase {
  static constexpr std::int32_t kHeads = 4;
  static constexpr std::int32_t kKvHeads = 2;

  Packed packed;
  std::vector<float> q, k, v, slopes, sinks;
  AttentionArgs args;

  PackedCase(std::uint32_t seed, bool options) {
    RandomValues random(seed);
    const std::int32_t most = seed % 3 == 0 ? 3 : 140;  // short ones take keys where they lie
    for (int n = random.Integer(1, 6); n > 0; --n) {
      packed.Add(random.Integer(0, most), random.Integer(0, 1) == 0 ? random.Integer(0, 300) : random.Integer(0, 9));
    }
    const std::int32_t dim = random.Integer(1, 20);
    const std::int32_t value_dim = random.Integer(1, 20);
    q = random.Floats(std::int64_t{packed.rows} * kHeads * dim);
    k = random.Floats(std::int64_t{packed.keys} * kKvHeads * dim);
    v = random.Floats(std::int64_t{packed.keys} * kKvHeads * value_dim);
    AttentionArgs& a = args;
    a.batch = static_cast<std::int32_t>(packed.q_starts.size());
    a.heads = kHeads;
    a.kv_heads = kKvHeads;
    a.queries = packed.longest_q;
    a.keys = packed.longest_k;
    a.head_dim = dim;
    a.value_dim = value_dim;
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.q_strides = {0, dim, kHeads * dim};
    a.k_strides = {0, dim, kKvHeads * dim};
    a.v_strides = {0, value_dim, kKvHeads * value_dim};
    a.out_strides = {0, value_dim, kHeads * value_dim};
    a.log_sum_exp_strides = {0, packed.rows, 1};
    a.q_starts = packed.q_starts.data();
    a.k_starts = packed.k_starts.data();
    a.q_lengths = packed.q_lengths.data();
    a.kv_lengths = packed.kv_lengths.data();
    a.causal = random.Integer(0, 1);
    if (random.Integer(0, 1) == 1) a.window_left = random.Integer(0, 50);
    if (!options) return;
    if (random.Integer(0, 2) == 0) a.softcap = 2.0F;
    if (random.Integer(0, 2) == 0) a.dropout_rate = 0.25F;
    if (random.Integer(0, 2) == 0) a.alibi_slopes = (slopes = random.Floats(kHeads)).data();
    if (random.Integer(0, 2) == 0) a.sinks = (sinks = random.Floats(kHeads)).data();
  }
  std::int64_t OutputFloats() const { return std::int64_t{packed.rows} * kHeads * args.value_dim; }
  std::int64_t Rows() const { return std::int64_t{packed.rows} * kHeads; }
};

TEST(PackedSequences, AgreeWithTheReference) {
  ThreadPool pool(3);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const PackedCase c(seed, false);
    AttentionArgs a = c.args;
    Guarded out[2] = {Guarded(c.OutputFloats()), Guarded(c.OutputFloats())};
    Guarded lse[2] = {Guarded(c.Rows()), Guarded(c.Rows())};
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

// Of each sequence's rows against its own keys, by three threads, by one and by the reference.
TEST(PackedSequences, GradientsAgreeWithTheReference) {
  ThreadPool pool(3);
  ThreadPool one(1);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const PackedCase c(seed, true);
    std::vector<float> out(static_cast<std::size_t>(c.OutputFloats()));
    std::vector<float> lse(static_cast<std::size_t>(c.Rows()));
    const std::vector<float> d_out = RandomValues(seed + 1000).Floats(c.OutputFloats());
    AttentionBackwardArgs args;
    args.attention = c.args;
    args.attention.out = out.data();
    args.attention.log_sum_exp = lse.data();
    ASSERT_TRUE(Attention(args.attention, pool).ok());
    args.d_out = d_out.data();
    std::vector<float> got[3][4];
    for (int n = 0; n < 3; ++n) {
      Guarded dq(static_cast<std::int64_t>(c.q.size()));
      Guarded dk(static_cast<std::int64_t>(c.k.size()));
      Guarded dv(static_cast<std::int64_t>(c.v.size()));
      Guarded d_sinks(static_cast<std::int64_t>(c.sinks.size()));
      args.dq = dq.data();
      args.dk = dk.data();
      args.dv = dv.data();
      args.d_sinks = c.sinks.empty() ? nullptr : d_sinks.data();
      ASSERT_TRUE((n == 2 ? AttentionBackwardReference(args) : RunAttentionBackward(args, n == 0 ? pool : one)).ok());
      ASSERT_TRUE(dq.MarginsIntact() && dk.MarginsIntact() && dv.MarginsIntact() && d_sinks.MarginsIntact()) << seed;
      got[n][0] = dq.Values();
      got[n][1] = dk.Values();
      got[n][2] = dv.Values();
      got[n][3] = d_sinks.Values();
    }
    for (int of = 0; of < 4; ++of) {
      ASSERT_TRUE(SameBits(got[0][of], got[1][of])) << seed;
      ASSERT_LE(Distance(got[0][of], got[2][of]), kAttentionGradientTolerance) << seed << ", " << of;
    }
  }
}

}  // namespace
}  // namespace headwise::testing
