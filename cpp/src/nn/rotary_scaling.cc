// Blocks: what a rotary embedding is made of: its check, and its frequencies under the scaling rules.
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

// What multiplies the base, but for the power.
double BaseFactor(const RotaryScaling& scaling, double length) {
  const double factor = scaling.factor;
  if (scaling.rule == RotaryRule::kNtk) return factor;
  if (scaling.rule != RotaryRule::kDynamic) return 1.0;
  const double original = scaling.original_length;
  return factor * std::max(length, original) / original - (factor - 1.0);
}

bool AllPositive(const float* factors, std::int32_t count) {
  return factors != nullptr &&
         std::all_of(factors, factors + count, [](float factor) { return std::isfinite(factor) && factor > 0.0F; });
}

bool ScalingFits(const RotaryScaling& scaling, std::int32_t dim) {
  if (!(std::isfinite(scaling.factor) && scaling.factor > 0.0F)) return false;
  switch (scaling.rule) {
    case RotaryRule::kYarn:
    case RotaryRule::kLlama3:
      return scaling.original_length > 0.0F && scaling.low > 0.0F && scaling.high > scaling.low;
    case RotaryRule::kDynamic:
      return scaling.original_length > 0.0F;
    case RotaryRule::kLongRope:
      return scaling.original_length > 0.0F && AllPositive(scaling.short_factors, dim / 2) &&
             AllPositive(scaling.long_factors, dim / 2);
    case RotaryRule::kNone:
    case RotaryRule::kLinear:
    case RotaryRule::kNtk:
      return true;
  }
  return false;
}

double Llama3(const RotaryScaling& scaling, double frequency) {
  const double turns = scaling.original_length * frequency / kTwoPi;
  const double kept = std::clamp((turns - scaling.low) / (static_cast<double>(scaling.high) - scaling.low), 0.0, 1.0);
  return frequency / scaling.factor * (1.0 - kept) + frequency * kept;
}

}  // namespace

Status CheckRotarySettings(const RotarySettings& rope, std::int32_t size) {
  if (rope.dim < 2 || rope.dim % 2 != 0 || rope.dim > size) return Status::InvalidShape("rope.dim");
  if ((rope.cos == nullptr) != (rope.sin == nullptr)) return Status::InvalidValue("rope.sin");
  if (rope.table_rows < 0) return Status::InvalidShape("rope.cos");
  if (!(std::isfinite(rope.base) && rope.base > 0.0F)) return Status::InvalidValue("rope.base");
  return ScalingFits(rope.scaling, rope.dim) ? Status::Ok() : Status::InvalidValue("rope.scaling");
}

double RotaryFrequency(const RotarySettings& rope, std::int32_t pair, std::int64_t length) {
  const RotaryScaling& scaling = rope.scaling;
  const std::int32_t dim = rope.dim;
  double base = rope.base;
  if (dim > 2) base *= std::pow(BaseFactor(scaling, static_cast<double>(length)), dim / (dim - 2.0));
  const double frequency = 1.0 / std::pow(base, 2.0 * pair / dim);
  switch (scaling.rule) {
    case RotaryRule::kLinear:
      return frequency / scaling.factor;
    case RotaryRule::kYarn:
      return Yarn(scaling, base, dim, pair, frequency);
    case RotaryRule::kLlama3:
      return Llama3(scaling, frequency);
    case RotaryRule::kLongRope:
      return frequency / (static_cast<double>(length) > scaling.original_length ? scaling.long_factors
                                                                                : scaling.short_factors)[pair];
    case RotaryRule::kNone:
    case RotaryRule::kNtk:
    case RotaryRule::kDynamic:
      break;
  }
  return frequency;
}

}  // namespace headwise
