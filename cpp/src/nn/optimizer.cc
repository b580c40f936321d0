// Blocks: optimizers, schedules, clipping.
#include "headwise/optimizer.h"

#include <algorithm>
#include <cmath>

#include "memory/aligned.h"
#include "nn/element_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kClipEpsilon = 1e-6;

void StepSgd(const OptimizerStepArgs& args, ElementRange range) {
  const OptimizerConfig& config = args.config;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    float g = args.gradients[i] + config.weight_decay * args.parameters[i];
    if (args.first != nullptr) {
      g += config.momentum * args.first[i];
      args.first[i] = g;
    }
    args.parameters[i] -= args.rate * g;
  }
}

void StepAdam(const OptimizerStepArgs& args, ElementRange range) {
  const OptimizerConfig& config = args.config;
  const bool decoupled = config.kind == OptimizerKind::kAdamW;
  const auto t = static_cast<double>(args.step);
  const auto size = static_cast<float>(args.rate / (1.0 - std::pow(static_cast<double>(config.beta1), t)));
  const auto root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(config.beta2), t)));
  const float keep = decoupled ? 1.0F - args.rate * config.weight_decay : 1.0F;
  const float decay = decoupled ? 0.0F : config.weight_decay;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const float p = args.parameters[i];
    const float g = args.gradients[i] + decay * p;
    const float m = config.beta1 * args.first[i] + (1.0F - config.beta1) * g;
    const float v = config.beta2 * args.second[i] + (1.0F - config.beta2) * g * g;
    args.first[i] = m;
    args.second[i] = v;
    args.parameters[i] = p * keep - size * m / (std::sqrt(v) * root + config.epsilon);
  }
}

void Step(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const OptimizerStepArgs*>(context);
  if (args.skip != nullptr && *args.skip) return;
  const ElementRange range = ElementsOfBlock(index, args.count);
  if (args.config.kind == OptimizerKind::kSgd) return StepSgd(args, range);
  StepAdam(args, range);
}

bool Fraction(float x) { return x >= 0.0F && x < 1.0F; }

}  // namespace

Status AddOptimizerStep(const OptimizerStepArgs& args, Job& job) {
  const OptimizerConfig& config = args.config;
  if (args.count < 0) return Status::InvalidShape("parameters");
  if (!std::isfinite(args.rate)) return Status::InvalidValue("rate");
  if (args.step < 1) return Status::InvalidValue("step");
  if (!Fraction(config.momentum)) return Status::InvalidValue("momentum");
  if (!Fraction(config.beta1)) return Status::InvalidValue("beta1");
  if (!Fraction(config.beta2)) return Status::InvalidValue("beta2");
  if (!(config.epsilon >= 0.0F)) return Status::InvalidValue("epsilon");
  if (!std::isfinite(config.weight_decay)) return Status::InvalidValue("weight_decay");
  if (args.count == 0) return Status::Ok();
  if (args.parameters == nullptr) return Status::InvalidValue("parameters");
  if (args.gradients == nullptr) return Status::InvalidValue("gradients");
  const bool sgd = config.kind == OptimizerKind::kSgd;
  if (args.first == nullptr && (!sgd || config.momentum > 0.0F)) return Status::InvalidValue("first");
  if (args.second == nullptr && !sgd) return Status::InvalidValue("second");
  return job.AddPhase(ElementBlocks(args.count), Step, const_cast<OptimizerStepArgs*>(&args));
}

Status OptimizerStep(const OptimizerStepArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddOptimizerStep(args, job); });
}

double LearningRate(const Schedule& schedule, std::int64_t step) {
  const auto t = static_cast<double>(std::max<std::int64_t>(step, 1));
  const auto warmup = static_cast<double>(std::max<std::int64_t>(schedule.warmup, 0));
  if (schedule.kind == ScheduleKind::kTransformer) {
    const double falling = 1.0 / std::sqrt(t);
    const double rising = warmup > 0.0 ? t / (warmup * std::sqrt(warmup)) : falling;
    return schedule.peak / std::sqrt(static_cast<double>(std::max(schedule.width, 1))) * std::min(falling, rising);
  }
  if (t < warmup) return schedule.peak * t / warmup;
  if (schedule.kind == ScheduleKind::kConstant) return schedule.peak;
  const double rest = static_cast<double>(schedule.total) - warmup;
  const double done = t - warmup;
  // A warm-up of all steps ends at the peak.
  const double part = rest > 0.0 ? std::min(done / rest, 1.0) : (done > 0.0 ? 1.0 : 0.0);
  return schedule.peak * (schedule.kind == ScheduleKind::kCosine ? 0.5 * (1.0 + std::cos(kPi * part)) : 1.0 - part);
}

GradientClip::~GradientClip() { FreeAligned(squares_); }

Status GradientClip::Prepare(float* gradients, std::int64_t count, float max_norm, Job& job) {
  if (count < 0) return Status::InvalidShape("gradients");
  if (count > 0 && gradients == nullptr) return Status::InvalidValue("gradients");
  if (!(max_norm > 0.0F)) return Status::InvalidValue("max_norm");
  gradients_ = gradients;
  count_ = count;
  max_norm_ = max_norm;
  norm_ = 0.0;
  factor_ = 1.0F;
  const std::int64_t blocks = ElementBlocks(count);
  const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(blocks), sizeof(double));
  FreeAligned(squares_);
  squares_ = static_cast<double*>(AllocateAligned(bytes));
  if (squares_ == nullptr) return Status::OutOfMemory(bytes);
  if (Status status = job.AddPhase(blocks, &Measure, this); !status.ok()) return status;
  if (Status status = job.AddPhase(1, &Join, this); !status.ok()) return status;
  return job.AddPhase(std::isinf(max_norm) ? 0 : blocks, &Scale, this);
}

void GradientClip::Measure(void* context, std::int64_t index, int /*thread*/) {
  const auto& self = *static_cast<const GradientClip*>(context);
  const ElementRange range = ElementsOfBlock(index, self.count_);
  double sum = 0.0;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    sum += static_cast<double>(self.gradients_[i]) * self.gradients_[i];
  }
  self.squares_[index] = sum;
}

void GradientClip::Join(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& self = *static_cast<GradientClip*>(context);
  double sum = 0.0;
  for (std::int64_t block = 0; block < ElementBlocks(self.count_); ++block) sum += self.squares_[block];
  self.norm_ = std::sqrt(sum);
  const double factor = self.max_norm_ / (self.norm_ + kClipEpsilon);
  self.factor_ = std::isfinite(self.norm_) && factor < 1.0 ? static_cast<float>(factor) : 1.0F;
}

void GradientClip::Scale(void* context, std::int64_t index, int /*thread*/) {
  const auto& self = *static_cast<const GradientClip*>(context);
  if (self.factor_ == 1.0F) return;
  const ElementRange range = ElementsOfBlock(index, self.count_);
  for (std::int64_t i = range.begin; i < range.end; ++i) self.gradients_[i] *= self.factor_;
}

}  // namespace headwise
