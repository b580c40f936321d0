// Attention reference: the public semantics by the plain formula, in double, one row at a time. Slow on purpose; the
// oracle of every test and the place to read what the fast paths mean.
#include <cmath>
#include <limits>

#include "attention/reference_rules.h"
#include "headwise/attention.h"
#include "memory/aligned.h"

namespace headwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const float* At(const float* data, const Strides& s, std::int32_t b, std::int32_t h, std::int32_t i) {
  return data + std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
}

class ReferenceRow {
 public:
  ReferenceRow(const AttentionArgs& args, double* scores, std::int32_t b, std::int32_t h, std::int32_t i)
      : a_(args),
        scores_(scores),
        b_(b),
        h_(h),
        i_(i),
        g_(h / (args.heads / args.kv_heads)),
        q_start_(reference::FirstQuery(args, b)),
        k_start_(reference::FirstKey(args, b)),
        keys_(args.k_starts == nullptr ? args.keys : args.kv_lengths[b]) {}

  void Run() {
    double max = -kInfinity;
    bool any = false;
    for (std::int32_t j = 0; j < keys_; ++j) {
      scores_[j] = Score(j);
      if (scores_[j] == -kInfinity) continue;
      any = true;
      // A NaN score makes the row NaN, as it should.
      if (!(scores_[j] <= max)) max = scores_[j];
    }
    double sum = 0.0;
    for (std::int32_t j = 0; any && j < keys_; ++j) {
      scores_[j] = scores_[j] == -kInfinity ? 0.0 : std::exp(scores_[j] - max);
      sum += scores_[j];
    }
    if (a_.log_sum_exp != nullptr) {
      const Strides& s = a_.log_sum_exp_strides;
      const Strides rows = s.row == 0 ? Strides{a_.heads * a_.queries, a_.queries, 1} : s;
      const_cast<float*>(At(a_.log_sum_exp, rows, b_, h_, i_ + q_start_))[0] =
          static_cast<float>(any ? max + std::log(sum) : -kInfinity);
    }
    double denominator = sum;
    if (any && a_.sinks != nullptr) denominator += std::exp(static_cast<double>(a_.sinks[h_]) - max);
    Output(any, denominator);
    Weights(any, denominator);
  }

 private:
  double Score(std::int32_t j) const {
    const float* q = At(a_.q, a_.q_strides, b_, h_, i_ + q_start_);
    const float* k = At(a_.k, a_.k_strides, b_, g_, j + k_start_);
    double score = 0.0;
    for (std::int32_t d = 0; d < a_.head_dim; ++d) {
      if (a_.score_kind == ScoreKind::kAdditive) {
        score += static_cast<double>(a_.additive_weights[std::int64_t{h_} * a_.head_dim + d]) *
                 std::tanh(static_cast<double>(q[d]) + k[d]);
      } else {
        score += static_cast<double>(q[d]) * k[d];
      }
    }
    score *= a_.scale;
    Store(ScoreStage::kRaw, j, score);
    if (a_.softcap > 0.0F) score = a_.softcap * std::tanh(score / a_.softcap);
    Store(ScoreStage::kSoftcapped, j, score);
    score += reference::Bias(a_, b_, h_, i_, j) + reference::Alibi(a_, b_, h_, i_, j);
    if (!Sees(j)) score = -kInfinity;
    Store(ScoreStage::kMasked, j, score);
    return score;
  }

  void Store(ScoreStage stage, std::int32_t j, double score) const {
    if (a_.score_stage != stage) return;
    a_.scores[((std::int64_t{b_} * a_.heads + h_) * a_.queries + i_) * a_.keys + j] = static_cast<float>(score);
  }

  void Output(bool any, double denominator) const {
    float* out = const_cast<float*>(At(a_.out, a_.out_strides, b_, h_, i_ + q_start_));
    for (std::int32_t c = 0; c < a_.value_dim; ++c) {
      double sum = 0.0;
      for (std::int32_t j = 0; any && j < keys_; ++j) {
        if (!Sees(j)) continue;
        sum +=
            scores_[j] * reference::DropoutFactor(a_, b_, h_, i_, j) * At(a_.v, a_.v_strides, b_, g_, j + k_start_)[c];
      }
      out[c] = static_cast<float>(any ? sum / denominator : 0.0);
    }
  }

  bool Sees(std::int32_t j) const { return reference::Sees(a_, b_, h_, i_, j); }

  void Weights(bool any, double denominator) const {
    if (a_.weights == nullptr) return;
    const std::int32_t count = a_.weight_heads == nullptr ? a_.heads : a_.weight_head_count;
    for (std::int32_t slot = 0; slot < count; ++slot) {
      if ((a_.weight_heads == nullptr ? slot : a_.weight_heads[slot]) != h_) continue;
      float* row = a_.weights + ((std::int64_t{b_} * count + slot) * a_.queries + i_) * a_.keys;
      for (std::int32_t j = 0; j < a_.keys; ++j) row[j] = static_cast<float>(any ? scores_[j] / denominator : 0.0);
    }
  }

  const AttentionArgs& a_;
  double* scores_;
  const std::int32_t b_, h_, i_, g_, q_start_, k_start_, keys_;
};

}  // namespace

Status AttentionReference(const AttentionArgs& args) {
  if (Status status = CheckAttention(args); !status.ok()) return status;
  const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(args.keys), sizeof(double));
  auto* scores = static_cast<double*>(AllocateAligned(bytes));
  if (scores == nullptr) return Status::OutOfMemory(bytes);
  for (std::int32_t b = 0; b < args.batch; ++b) {
    for (std::int32_t h = 0; h < args.heads; ++h) {
      for (std::int32_t i = 0; i < (args.q_starts == nullptr ? args.queries : args.q_lengths[b]); ++i) {
        ReferenceRow(args, scores, b, h, i).Run();
      }
    }
  }
  FreeAligned(scores);
  return Status::Ok();
}

}  // namespace headwise
