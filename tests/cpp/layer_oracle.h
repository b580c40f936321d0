// Tests: multi-head attention by its definition, plain loops in double, one thread. Knows the masks by which keys are
// hidden whole (causality, lengths, padding); the finer options are attention's own tests' business.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/multi_head_attention.h"

namespace headwise::testing {

struct LayerResult {
  std::vector<double> output;   // [B, L, output_dim]
  std::vector<double> weights;  // [B, H, L, S]
};

// Reads the layer's parameters through GetParameter and the same arguments as Forward.
LayerResult LayerOracle(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args);

}  // namespace headwise::testing
