// Attention reference: the public semantics by the plain formula, in double, one row at a time. Slow on purpose; the
// oracle of every test and the place to read what the fast paths mean.
#include <cmath>
#include <limits>

#include "attention/reference_masks.h"
#include "attention/visibility.h"
#include "headwise/attention.h"
#include "kernels/dropout.h"
#include "memory/aligned.h"

namespace headwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const float* At(const float* data, const Strides& s, std::int32_t b, std::int32_t h, std::int32_t i) {
  return data + std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
}

template <class T>
T Broadcast(const T* data, const BroadcastStrides& s, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  return data[std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row +
              std::int64_t{j} * s.column];
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
        q_start_(args.q_starts == nullptr ? 0 : args.q_starts[b]),
        k_start_(args.k_starts == nullptr ? 0 : args.k_starts[b]),
        keys_(args.k_starts == nullptr ? args.keys : args.kv_lengths[b]),
        visibility_(args, b) {}

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
    bool visible = true;
    if (a_.bias != nullptr) {
      const double bias = Broadcast(a_.bias, a_.bias_strides, b_, h_, i_, j);
      visible &= bias != -kInfinity;
      score += bias;
    }
    if (a_.alibi_slopes != nullptr) {
      score -= a_.alibi_slopes[h_] * std::fabs(static_cast<double>(visibility_.Position(i_) - j));
    }
    const KeyRange range = visibility_.Row(i_);
    visible &= j >= range.begin && j < range.end;
    visible &= !Hidden(j);
    if (!visible) score = -kInfinity;
    Store(ScoreStage::kMasked, j, score);
    return score;
  }

  void Store(ScoreStage stage, std::int32_t j, double score) const {
    if (a_.score_stage != stage) return;
    a_.scores[((std::int64_t{b_} * a_.heads + h_) * a_.queries + i_) * a_.keys + j] = static_cast<float>(score);
  }

  void Output(bool any, double denominator) const {
    const kernels::Dropout dropout(a_.dropout_rate, a_.dropout_seed_low, a_.dropout_seed_high);
    const KeyRange range = visibility_.Row(i_);
    float* out = const_cast<float*>(At(a_.out, a_.out_strides, b_, h_, i_ + q_start_));
    for (std::int32_t c = 0; c < a_.value_dim; ++c) {
      double sum = 0.0;
      for (std::int32_t j = range.begin; any && j < range.end; ++j) {
        if (Hidden(j)) continue;
        double weight = scores_[j];
        if (a_.dropout_rate > 0.0F) weight *= dropout.Factor(b_, h_, i_, j);
        sum += weight * At(a_.v, a_.v_strides, b_, g_, j + k_start_)[c];
      }
      out[c] = static_cast<float>(any ? sum / denominator : 0.0);
    }
  }

  bool Hidden(std::int32_t j) const {
    if (!MaskShows(a_, b_, h_, i_, j) || !BlockMaskShows(a_, i_, j)) return true;
    if (a_.key_padding_mask != nullptr && a_.key_padding_mask[std::int64_t{b_} * a_.keys + j] == 0) return true;
    return a_.bias != nullptr && static_cast<double>(Broadcast(a_.bias, a_.bias_strides, b_, h_, i_, j)) == -kInfinity;
  }

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
  const Visibility visibility_;
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
