// Tests: a small Transformer, and what its tests have in common.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "headwise/transformer.h"
#include "random_values.h"

namespace headwise::testing {

using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;

inline TransformerConfig SmallConfig(TransformerKind kind) {
  TransformerConfig c;
  c.kind = kind;
  c.embed_dim = 8;
  c.heads = 2;
  c.feed_forward = 12;
  c.encoder_layers = kind == TransformerKind::kDecoder ? 0 : 2;
  c.decoder_layers = kind == TransformerKind::kEncoder ? 0 : 2;
  c.source_vocabulary = 7;
  c.target_vocabulary = 9;
  c.most_positions = 10;
  c.seed_low = 5;
  return c;
}

inline Ids TokenIds(RandomValues& random, std::int32_t count, std::int32_t vocabulary) {
  Ids ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back(random.Integer(0, vocabulary - 1));
  return ids;
}

// Relative to max(1, |expected|).
inline void ExpectNear(const Floats& actual, const Floats& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::fmax(1.0, std::fabs(expected[i]))) << what << ", " << i;
  }
}

}  // namespace headwise::testing
