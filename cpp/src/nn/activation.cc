// Layers: activations.
#include "headwise/activation.h"

#include <algorithm>
#include <cmath>

#include "nn/element_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

constexpr float kSqrtHalf = 0.70710678118654752440F;
constexpr float kInverseSqrt2Pi = 0.39894228040143267794F;  // the normal density at 0
constexpr float kSqrt2OverPi = 0.79788456080286535588F;
constexpr float kCubic = 0.044715F;

// NaN stays NaN.
float Relu(float x) { return x < 0.0F ? 0.0F : x; }
float ReluSlope(float x) { return x > 0.0F ? 1.0F : (x <= 0.0F ? 0.0F : x); }

float Gelu(float x) { return 0.5F * x * (1.0F + std::erf(x * kSqrtHalf)); }
float GeluSlope(float x) {
  return 0.5F * (1.0F + std::erf(x * kSqrtHalf)) + x * kInverseSqrt2Pi * std::exp(-0.5F * x * x);
}

float GeluTanh(float x) { return 0.5F * x * (1.0F + std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x))); }
float GeluTanhSlope(float x) {
  const float t = std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kSqrt2OverPi * (1.0F + 3.0F * kCubic * x * x);
}

template <class Function>
void Map(const ActivationArgs& args, ElementRange range, Function function) {
  for (std::int64_t i = range.begin; i < range.end; ++i) args.y[i] = function(args.x[i]);
}

template <class Function>
void MapSlope(const ActivationBackwardArgs& args, ElementRange range, Function slope) {
  for (std::int64_t i = range.begin; i < range.end; ++i) args.d_x[i] = args.d_y[i] * slope(args.x[i]);
}

void Forward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ActivationArgs*>(context);
  const ElementRange range = ElementsOfBlock(index, args.count);
  switch (args.kind) {
    case ActivationKind::kRelu:
      return Map(args, range, Relu);
    case ActivationKind::kGelu:
      return Map(args, range, Gelu);
    case ActivationKind::kGeluTanh:
      return Map(args, range, GeluTanh);
  }
}

void Backward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ActivationBackwardArgs*>(context);
  const ElementRange range = ElementsOfBlock(index, args.count);
  switch (args.kind) {
    case ActivationKind::kRelu:
      return MapSlope(args, range, ReluSlope);
    case ActivationKind::kGelu:
      return MapSlope(args, range, GeluSlope);
    case ActivationKind::kGeluTanh:
      return MapSlope(args, range, GeluTanhSlope);
  }
}

}  // namespace

Status AddActivation(const ActivationArgs& args, Job& job) {
  if (args.count < 0) return Status::InvalidShape("x");
  if (args.count > 0 && args.x == nullptr) return Status::InvalidValue("x");
  if (args.count > 0 && args.y == nullptr) return Status::InvalidValue("y");
  return job.AddPhase(ElementBlocks(args.count), Forward, const_cast<ActivationArgs*>(&args));
}

Status Activation(const ActivationArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddActivation(args, job); });
}

Status AddActivationBackward(const ActivationBackwardArgs& args, Job& job) {
  if (args.count < 0) return Status::InvalidShape("x");
  if (args.count > 0 && args.x == nullptr) return Status::InvalidValue("x");
  if (args.count > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (args.count > 0 && args.d_x == nullptr) return Status::InvalidValue("d_x");
  return job.AddPhase(ElementBlocks(args.count), Backward, const_cast<ActivationBackwardArgs*>(&args));
}

Status ActivationBackward(const ActivationBackwardArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddActivationBackward(args, job); });
}

}  // namespace headwise
