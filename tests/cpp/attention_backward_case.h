// Tests: the backward pass of an AttentionCase: gradients by the fast path or the reference, between guarded margins.
#pragma once

#include <vector>

#include "attention_case.h"
#include "headwise/attention_backward.h"

namespace headwise::testing {

struct AttentionGradients {
  std::vector<float> dq, dk, dv, d_bias, d_sinks;
};

struct AttentionBackwardCase {
  AttentionCase forward;
  std::vector<float> d_out;
  mutable bool intact = true;

  // Any options, from a seed, without what has no gradient.
  static AttentionBackwardCase Random(std::uint32_t seed) {
    AttentionBackwardCase c;
    c.forward = AttentionCase::Random(seed);
    c.forward.args.score_kind = ScoreKind::kDot;
    c.forward.additive.clear();
    c.Prepare(seed);
    return c;
  }
  void Prepare(std::uint32_t seed) {
    forward.args.score_stage = ScoreStage::kNone;
    forward.want_weights = false;
    forward.weight_heads.clear();
    forward.args.ring_size = 0;
    forward.args.sink_tokens = 0;
    forward.ring_totals.clear();
    forward.want_log_sum_exp = true;
    RandomValues random(seed + 12345);
    d_out = random.Floats(forward.Rows() * forward.args.value_dim);
  }

  template <class Run>
  AttentionGradients Gradients(ThreadPool& pool, Run&& run) const {
    AttentionGradients gradients;
    forward.Outputs([&](const AttentionArgs& a) {
      Status status = Attention(a, pool);
      if (!status.ok()) return status;
      Guarded dq(static_cast<std::int64_t>(forward.q.size()));
      Guarded dk(static_cast<std::int64_t>(forward.k.size()));
      Guarded dv(static_cast<std::int64_t>(forward.v.size()));
      Guarded d_bias(static_cast<std::int64_t>(forward.bias.size()));
      Guarded d_sinks(static_cast<std::int64_t>(forward.sinks.size()));
      AttentionBackwardArgs args;
      args.attention = a;
      args.d_out = d_out.data();
      args.dq = dq.data();
      args.dk = dk.data();
      args.dv = dv.data();
      args.d_bias = forward.bias.empty() ? nullptr : d_bias.data();
      args.d_sinks = forward.sinks.empty() ? nullptr : d_sinks.data();
      status = run(args);
      intact = dq.MarginsIntact() && dk.MarginsIntact() && dv.MarginsIntact() && d_bias.MarginsIntact() &&
               d_sinks.MarginsIntact() && status.ok();
      gradients = {dq.Values(), dk.Values(), dv.Values(), d_bias.Values(), d_sinks.Values()};
      return status;
    });
    return gradients;
  }
  AttentionGradients Fast(ThreadPool& pool) const {
    return Gradients(pool, [&](const AttentionBackwardArgs& args) { return RunAttentionBackward(args, pool); });
  }
  AttentionGradients Reference(ThreadPool& pool) const {
    return Gradients(pool, [](const AttentionBackwardArgs& args) { return AttentionBackwardReference(args); });
  }
};

}  // namespace headwise::testing
