// Attention driver: from a row's finished softmax state to the output row, its log-sum-exp and its weights.
#pragma once

#include <cstdint>

#include "attention/call.h"

namespace headwise {

// What follows from a row's maximum and its sum of lifted weights, in double: it costs nothing beside the row and keeps the
// state's rounding the only one.
struct RowSum {
  RowSum(const AttentionCall& call, std::int32_t h, bool log2, float max, float sum);
  double LogSumExp() const;  // natural, of the keys' scores
  double max;                // natural
  double sum;                // of exp(score - max)
  double factor = 1.0;       // weight = exp(score - max) * factor; the sink is in it
  double sink = 0.0;         // the sink's own weight
};

// `max` is in the scores' units, `sum` that of the lifted weights without the sink, `acc` the row's weighted values.
// A sum of 0 is a row without a visible key: zeros, and a log-sum-exp of -infinity.
void FinishRow(const AttentionCall& call, std::int32_t b, std::int32_t h, std::int32_t i, bool log2, float max,
               float sum, const float* acc);

}  // namespace headwise
