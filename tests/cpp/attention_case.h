// Tests: one attention call with everything it points to, made from a seed, and the outputs of a run.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "guarded.h"
#include "headwise/attention.h"
#include "random_values.h"

namespace headwise::testing {

struct AttentionOutputs {
  std::vector<float> out, weights, scores, log_sum_exp;
};

struct AttentionCase {
  AttentionArgs args;
  std::vector<float> q, k, v, bias, alibi, sinks, additive;
  std::vector<std::uint8_t> mask, padding;
  std::vector<std::int32_t> kv_lengths, q_lengths, offsets, weight_heads, block_rows, block_columns, ring_totals;
  bool want_weights = false;
  bool want_log_sum_exp = false;

  void Shape(int b, int h, int g, int l, int s, int d, int dv) {
    args.batch = b;
    args.heads = h;
    args.kv_heads = g;
    args.queries = l;
    args.keys = s;
    args.head_dim = d;
    args.value_dim = dv;
    args.scale = d > 0 ? 1.0F / std::sqrt(static_cast<float>(d)) : 1.0F;
  }
  // 'bhld' or 'blhd', all four tensors alike.
  void Layout(bool head_first) {
    const auto strides = [head_first](int heads, int rows, int size) {
      return head_first ? Strides{heads * rows * size, rows * size, size}
                        : Strides{heads * rows * size, size, heads * size};
    };
    args.q_strides = strides(args.heads, args.queries, args.head_dim);
    args.k_strides = strides(args.kv_heads, args.keys, args.head_dim);
    args.v_strides = strides(args.kv_heads, args.keys, args.value_dim);
    args.out_strides = strides(args.heads, args.queries, args.value_dim);
  }
  void Fill(RandomValues& random, float size = 1.0F) {
    const std::int64_t kv_rows = std::int64_t{args.batch} * args.kv_heads * args.keys;
    q = random.Floats(Rows() * args.head_dim, -size, size);
    k = random.Floats(kv_rows * args.head_dim, -size, size);
    v = random.Floats(kv_rows * args.value_dim);
  }
  std::int64_t Rows() const { return std::int64_t{args.batch} * args.heads * args.queries; }

  // Any options, from a seed. Shapes around the tile borders, primes and 1.
  static AttentionCase Random(std::uint32_t seed);

  void MakeRing(RandomValues& random);

  using Function = Status (*)(const AttentionArgs&);
  template <class Run>
  AttentionOutputs Outputs(Run&& run, Status* status = nullptr) const {
    AttentionArgs a = args;
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.bias = Data(bias);
    a.alibi_slopes = Data(alibi);
    a.sinks = Data(sinks);
    a.additive_weights = Data(additive);
    a.mask = Data(mask);
    a.key_padding_mask = Data(padding);
    a.kv_lengths = Data(kv_lengths);
    a.q_lengths = Data(q_lengths);
    a.causal_offsets = Data(offsets);
    a.ring_totals = Data(ring_totals);
    a.weight_heads = Data(weight_heads);
    a.block_rows = Data(block_rows);
    const std::int32_t no_column = 0;
    a.block_columns = block_columns.empty() ? &no_column : block_columns.data();
    a.weight_head_count = static_cast<std::int32_t>(weight_heads.size());
    const std::int64_t weight_rows =
        weight_heads.empty() ? Rows() : Rows() / std::max(a.heads, 1) * a.weight_head_count;
    Guarded out(Rows() * a.value_dim);
    Guarded weights(want_weights ? weight_rows * a.keys : 0);
    Guarded scores(a.score_stage != ScoreStage::kNone ? Rows() * a.keys : 0);
    Guarded lse(want_log_sum_exp ? Rows() : 0);
    a.out = out.data();
    a.weights = want_weights ? weights.data() : nullptr;
    a.scores = a.score_stage != ScoreStage::kNone ? scores.data() : nullptr;
    a.log_sum_exp = want_log_sum_exp ? lse.data() : nullptr;
    const Status result = run(a);
    if (status != nullptr) *status = result;
    intact = out.MarginsIntact() && weights.MarginsIntact() && scores.MarginsIntact() && lse.MarginsIntact();
    return {out.Values(), weights.Values(), scores.Values(), lse.Values()};
  }
  AttentionOutputs Fast(ThreadPool& pool) const {
    return Outputs([&pool](const AttentionArgs& a) { return Attention(a, pool); });
  }
  AttentionOutputs Reference() const {
    return Outputs([](const AttentionArgs& a) { return AttentionReference(a); });
  }
  std::string Describe() const;

  mutable bool intact = true;

 private:
  template <class T>
  static const T* Data(const std::vector<T>& values) {
    return values.empty() ? nullptr : values.data();
  }
};

// The largest difference, relative to max(1, |expected|); infinite where one is NaN or infinite and the other is not
// the same.
double Distance(const std::vector<float>& got, const std::vector<float>& expected);

}  // namespace headwise::testing
