// Attention driver: from a row's finished softmax state to the output row, its log-sum-exp and its weights.
#pragma once

#include <cstdint>

#include "attention/call.h"

namespace headwise {

// `max` is in the tile's units, `sum` the softmax's denominator without the sink, `acc` the row's weighted values.
// A sum of 0 is a row without a visible key: zeros, and a log-sum-exp of -infinity.
void FinishRow(const AttentionCall& call, std::int32_t b, std::int32_t h, std::int32_t i, float max, float sum,
               const float* acc);

}  // namespace headwise
