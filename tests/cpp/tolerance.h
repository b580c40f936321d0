// Tests: every tolerance of the C++ suite, each with its reason. Loosening one is a reviewed change.
#pragma once

namespace headwise::testing {

// Attention on unit-scale inputs against the double reference, relative to max(1, |expected|): the promise of the
// public documentation.
inline constexpr double kAttentionTolerance = 2e-6;

// The same where inputs reach 2 and options (bias, softcap, additive scores) make scores of up to 80, which float32
// itself holds to 4e-6 only, and the exponential passes on.
inline constexpr double kAttentionOptionsTolerance = 2e-5;

// Scores themselves: sums of up to 80 products of up to 4.
inline constexpr double kScoreTolerance = 5e-6;

// The layer against its definition, relative to max(1, |expected|): projections of inputs up to 1 by weights up to 0.5
// give scores of up to 40, whose rounding the exponential passes on; two more products follow.
inline constexpr double kLayerTolerance = 1e-5;

// Attention's gradients on inputs up to 2, relative to max(1, |expected|): the scores' own rounding, as above, times up to
// 128 terms of a sum.
inline constexpr double kAttentionGradientTolerance = 5e-5;

// Differences of float32 outputs over a step of 1/32: 60 outputs rounded at 6e-8 over the step, and the rest of the series.
inline constexpr double kFiniteDifferenceTolerance = 1e-4;

// Ten steps of an optimizer in float32 beside double: parameters near 1 are rounded ten times, moments too.
inline constexpr double kOptimizerTolerance = 5e-6;
// Attention over a cache of float16 cells, keys and values in -1 ... 1: each is off by at most 2^-12, which moves scores of
// a dozen products by up to 1e-3 and the mean of the values as much.
inline constexpr double kHalfCacheTolerance = 2e-3;

// The same with int8 cells, each off by at most 1/254.
inline constexpr double kInt8CacheTolerance = 2e-2;

// Differences of a whole model's loss over a step of 1/256: its float32 logits, a handful of units in the last place off, over
// the step, and the rest of a series through several norms.
inline constexpr double kTransformerGradientTolerance = 1e-3;

// A target read token by token beside one pass over it: the same float32 sums in other blocks, through a few layers and norms;
// logits are near 1.
inline constexpr double kDecodingTolerance = 1e-5;

}  // namespace headwise::testing
