// Attention driver: see finish_row.h.
#include "attention/finish_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headwise {

void FinishRow(const AttentionCall& call, std::int32_t b, std::int32_t h, std::int32_t i, float max, float sum,
               const float* acc) {
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

  // Once a row, in double: it costs nothing beside the row and keeps the state's rounding the only one.
  const double natural_max = static_cast<double>(max) * call.unit;
  if (log_sum_exp != nullptr) *log_sum_exp = static_cast<float>(natural_max + std::log(static_cast<double>(sum)));
  double numerator = 1.0;
  double denominator = sum;
  if (args.sinks != nullptr) {
    const double sink = args.sinks[h];
    const double top = std::max(natural_max, sink);
    numerator = std::exp(natural_max - top);
    denominator = denominator * numerator + std::exp(sink - top);
  }
  const auto factor = static_cast<float>(numerator / denominator);
  if (args.sinks == nullptr) {
    call.kernels->divide(acc, args.value_dim, sum, out);
  } else {
    call.kernels->scale(acc, args.value_dim, factor, out);
  }
  if (weights != nullptr) {
    (call.log2_units ? call.kernels->weights_log2 : call.kernels->weights_natural)(weights, args.keys, max, factor);
  }
}

}  // namespace headwise
