// Attention driver: see finish_row.h.
#include "attention/finish_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headwise {

RowSum::RowSum(const AttentionCall& call, std::int32_t h, bool log2, float max_score, float lifted_sum)
    : max(static_cast<double>(max_score) * UnitOf(log2)), sum(static_cast<double>(lifted_sum) * call.unlift) {
  double denominator = sum;
  if (call.args.sinks != nullptr) {
    const double logit = call.args.sinks[h];
    const double top = std::max(max, logit);
    factor = std::exp(max - top);
    sink = std::exp(logit - top);
    denominator = denominator * factor + sink;
    sink /= denominator;
  }
  factor /= denominator;
}

double RowSum::LogSumExp() const { return max + std::log(sum); }

void FinishRow(const AttentionCall& call, std::int32_t b, std::int32_t h, std::int32_t i, bool log2, float max,
               float sum, const float* acc) {
  const AttentionArgs& args = call.args;
  if (i >= call.Queries(b)) return;  // the next sequence's
  float* out = call.Output(b, h, i);
  float* weights = call.Weights(b, h, i);
  float* log_sum_exp = call.LogSumExp(b, h, i);
  if (sum == 0.0F) {
    std::fill(out, out + args.value_dim, 0.0F);
    if (weights != nullptr) std::fill(weights, weights + args.keys, 0.0F);
    if (log_sum_exp != nullptr) *log_sum_exp = -std::numeric_limits<float>::infinity();
    return;
  }

  const RowSum row(call, h, log2, max, sum);
  if (log_sum_exp != nullptr) *log_sum_exp = static_cast<float>(row.LogSumExp());
  if (args.sinks == nullptr) {
    call.kernels->divide(acc, args.value_dim, sum, out);
  } else {
    call.kernels->scale(acc, args.value_dim, static_cast<float>(row.factor * call.unlift), out);
  }
  if (weights != nullptr) {
    (log2 ? call.kernels->weights_log2 : call.kernels->weights_natural)(weights, args.keys, max,
                                                                        static_cast<float>(row.factor));
  }
}

}  // namespace headwise
