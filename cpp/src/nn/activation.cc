// Blocks: activations.
#include "headwise/activation.h"

#include <algorithm>

#include "kernels/kernel_table.h"
#include "nn/element_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

// NaN stays NaN.
float Relu(float x) { return x < 0.0F ? 0.0F : x; }
float ReluSlope(float x) { return x > 0.0F ? 1.0F : (x <= 0.0F ? 0.0F : x); }

void Forward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ActivationArgs*>(context);
  const ElementRange range = ElementsOfBlock(index, args.count);
  const float* x = args.x + range.begin;
  float* y = args.y + range.begin;
  const std::int64_t count = range.end - range.begin;
  switch (args.kind) {
    case ActivationKind::kRelu:
      std::transform(x, x + count, y, Relu);
      return;
    case ActivationKind::kGelu:
      return kernels::Kernels().gelu(x, count, y);
    case ActivationKind::kGeluTanh:
      return kernels::Kernels().gelu_tanh(x, count, y);
  }
}

void Backward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ActivationBackwardArgs*>(context);
  const ElementRange range = ElementsOfBlock(index, args.count);
  const float* x = args.x + range.begin;
  const float* d_y = args.d_y + range.begin;
  float* d_x = args.d_x + range.begin;
  const std::int64_t count = range.end - range.begin;
  switch (args.kind) {
    case ActivationKind::kRelu:
      std::transform(x, x + count, d_y, d_x, [](float at, float d) { return d * ReluSlope(at); });
      return;
    case ActivationKind::kGelu:
      return kernels::Kernels().gelu_slope(x, d_y, count, d_x);
    case ActivationKind::kGeluTanh:
      return kernels::Kernels().gelu_tanh_slope(x, d_y, count, d_x);
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
