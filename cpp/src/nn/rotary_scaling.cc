// Blocks: the frequencies of rotary embeddings under the scaling rules.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "headwise/rotary.h"

namespace headwise {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

// The pair, as a real number, that makes `turns` turns within the original length.
double PairOfTurns(const RotaryScaling& scaling, double base, double dim, double turns) {
  return dim * std::log(static_cast<double>(scaling.original_length) / (turns * kTwoPi)) / (2.0 * std::log(base));
}

double Yarn(const RotaryScaling& scaling, double base, std::int32_t dim, std::int32_t pair, double frequency) {
  const double first = std::max(std::floor(PairOfTurns(scaling, base, dim, scaling.high)), 0.0);
  double last = std::min(std::ceil(PairOfTurns(scaling, base, dim, scaling.low)), dim - 1.0);
  if (first == last) last += 0.001;
  const double interpolated = std::clamp((pair - first) / (last - first), 0.0, 1.0);
  return frequency / scaling.factor * interpolated + frequency * (1.0 - interpolated);
}

double Llama3(const RotaryScaling& scaling, double frequency) {
  const double turns = scaling.original_length * frequency / kTwoPi;
  const double kept = std::clamp((turns - scaling.low) / (static_cast<double>(scaling.high) - scaling.low), 0.0, 1.0);
  return frequency / scaling.factor * (1.0 - kept) + frequency * kept;
}

}  // namespace

double RotaryFrequency(const RotaryScaling& scaling, double base, std::int32_t dim, std::int32_t pair) {
  if (scaling.rule == RotaryRule::kNtk && dim > 2) {
    base *= std::pow(static_cast<double>(scaling.factor), dim / (dim - 2.0));
  }
  const double frequency = 1.0 / std::pow(base, 2.0 * pair / dim);
  switch (scaling.rule) {
    case RotaryRule::kLinear:
      return frequency / scaling.factor;
    case RotaryRule::kYarn:
      return Yarn(scaling, base, dim, pair, frequency);
    case RotaryRule::kLlama3:
      return Llama3(scaling, frequency);
    case RotaryRule::kNone:
    case RotaryRule::kNtk:
      break;
  }
  return frequency;
}

}  // namespace headwise
