// Public: one step of an optimizer over a flat array of parameters, learning-rate schedules, and clipping by the norm of all
// gradients together.
//
//   SGD:   g <- g + decay p;  b <- momentum b + g;  p <- p - rate b
//   Adam (Kingma and Ba, 2015): g <- g + decay p;  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
//          p <- p - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//   AdamW (Loshchilov and Hutter, 2019): p <- p (1 - rate decay), then Adam without decay
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

enum class OptimizerKind : std::int32_t { kSgd = 0, kAdam = 1, kAdamW = 2 };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdam;
  float momentum = 0.0F;  // SGD
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
};

// All pointers are borrowed for the length of the call.
struct OptimizerStepArgs {
  OptimizerConfig config;
  float rate = 0.0F;      // this step's learning rate
  std::int64_t step = 1;  // t, counted from 1
  std::int64_t count = 0;
  float* parameters = nullptr;       // [count]
  const float* gradients = nullptr;  // [count]
  float* first = nullptr;            // [count] b, or m; zeros before the first step; null for SGD without momentum
  float* second = nullptr;           // [count] v; null for SGD
  const bool* skip = nullptr;        // null, or read when the phase runs: true changes nothing
};

// One phase; `args` outlives the job. kInvalidValue for a step below 1 and for rates that are no numbers.
Status AddOptimizerStep(const OptimizerStepArgs& args, Job& job);
Status OptimizerStep(const OptimizerStepArgs& args, ThreadPool& pool);

enum class ScheduleKind : std::int32_t {
  kConstant = 0,     // peak, after a linear warm-up
  kTransformer = 1,  // peak * width^-1/2 * min(t^-1/2, t * warmup^-3/2)  (Vaswani et al., 2017, section 5.3)
  kCosine = 2,       // linear warm-up to peak, then half a cosine down to 0 at `total`
  kLinear = 3,       // the same, in a straight line
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double peak = 1e-3;       // with kTransformer a factor, 1 as published
  std::int64_t warmup = 0;  // steps; 0: none
  std::int64_t total = 0;   // kCosine, kLinear; may equal the warm-up
  std::int32_t width = 1;   // E, kTransformer
};

// The rate of step t, counted from 1; what is below counts as 1. Never NaN, never infinite, and above 0 until `total`.
double LearningRate(const Schedule& schedule, std::int64_t step);

// Gradients are scaled so that the norm of all of them is at most `max_norm`: by max_norm / (norm + 1e-6) when that is below
// 1, as PyTorch does. A norm that is not finite scales nothing. The object outlives the job and does not move.
class GradientClip {
 public:
  GradientClip() = default;
  ~GradientClip();
  GradientClip(const GradientClip&) = delete;
  GradientClip& operator=(const GradientClip&) = delete;

  // Infinity for `max_norm` measures only. Three phases; blocks and their order depend on the count alone.
  Status Prepare(float* gradients, std::int64_t count, float max_norm, Job& job);
  // Before clipping; once the job is done.
  double norm() const { return norm_; }

 private:
  static void Measure(void* context, std::int64_t index, int thread);
  static void Join(void* context, std::int64_t index, int thread);
  static void Scale(void* context, std::int64_t index, int thread);

  float* gradients_ = nullptr;
  std::int64_t count_ = 0;
  float max_norm_ = 0.0F;
  double* squares_ = nullptr;  // a sum for each block
  double norm_ = 0.0;
  float factor_ = 1.0F;
};

}  // namespace headwise
