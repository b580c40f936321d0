// Blocks: softmax cross-entropy. A row's sums are in double; they are what the loss is read from.
#include "headwise/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {

Status CrossEntropyLoss::Prepare(const CrossEntropyArgs& args, Job& job) {
  if (args.rows < 0 || args.classes < 0) return Status::InvalidShape("logits");
  if (args.divisor < 0) return Status::InvalidValue("divisor");
  if (!(args.smoothing >= 0.0F && args.smoothing <= 1.0F)) return Status::InvalidValue("smoothing");
  args_ = args;
  result_ = {};
  if (args.rows > 0) {
    if (args.classes == 0) return Status::InvalidShape("logits");
    if (args.logits == nullptr) return Status::InvalidValue("logits");
    if (args.targets == nullptr) return Status::InvalidValue("targets");
    if (args.row_loss == nullptr) return Status::InvalidValue("row_loss");
    if (args.row_correct == nullptr) return Status::InvalidValue("row_correct");
    for (std::int32_t row = 0; row < args.rows; ++row) {
      const std::int32_t target = args.targets[row];
      if (target == args.ignored) continue;
      if (target < 0 || target >= args.classes) return Status::InvalidValue("targets");
      ++result_.counted;
    }
  }
  if (Status status = job.AddPhase(RowBlocks(args.rows, args.classes), &Rows, this); !status.ok()) return status;
  return job.AddPhase(1, &Sum, this);
}

void CrossEntropyLoss::Rows(void* context, std::int64_t index, int /*thread*/) {
  const auto& self = *static_cast<const CrossEntropyLoss*>(context);
  const RowRange rows = RowsOfBlock(index, self.args_.rows, self.args_.classes);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) self.Row(row);
}

void CrossEntropyLoss::Row(std::int64_t row) const {
  const std::int32_t classes = args_.classes;
  const std::int32_t target = args_.targets[row];
  const float* logits = args_.logits + row * classes;
  float* d_logits = args_.d_logits == nullptr ? nullptr : args_.d_logits + row * classes;
  args_.row_loss[row] = 0.0F;
  args_.row_correct[row] = 0;
  if (target == args_.ignored) {
    if (d_logits != nullptr) std::fill_n(d_logits, classes, 0.0F);
    return;
  }
  const std::int32_t top = static_cast<std::int32_t>(std::max_element(logits, logits + classes) - logits);
  const double max = logits[top];
  double sum = 0.0;
  double mean = 0.0;  // of the logits, below the largest
  for (std::int32_t c = 0; c < classes; ++c) {
    sum += std::exp(static_cast<float>(logits[c] - max));
    mean += logits[c] - max;
  }
  mean /= classes;
  const double log_sum = std::log(sum);
  const double smoothing = args_.smoothing;
  // The mean counts only with smoothing: a logit of -infinity (a class ruled out) must not make 0 * infinity.
  double loss = log_sum - (1.0 - smoothing) * (logits[target] - max);
  if (smoothing > 0.0) loss -= smoothing * mean;
  args_.row_loss[row] = static_cast<float>(loss);
  args_.row_correct[row] = top == target ? 1 : 0;
  if (d_logits == nullptr) return;
  const double each = smoothing / classes;
  const double factor = 1.0 / divisor();
  for (std::int32_t c = 0; c < classes; ++c) {
    const double p = std::exp(static_cast<float>(logits[c] - max)) / sum;
    const double q = each + (c == target ? 1.0 - smoothing : 0.0);
    d_logits[c] = static_cast<float>((p - q) * factor);
  }
}

void CrossEntropyLoss::Sum(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& self = *static_cast<CrossEntropyLoss*>(context);
  double sum = 0.0;
  for (std::int32_t row = 0; row < self.args_.rows; ++row) {
    sum += self.args_.row_loss[row];
    self.result_.correct += self.args_.row_correct[row];
  }
  self.result_.loss = self.result_.counted > 0 ? sum / self.divisor() : 0.0;
}

Status CrossEntropy(const CrossEntropyArgs& args, CrossEntropyResult& result, ThreadPool& pool) {
  CrossEntropyLoss loss;
  const Status status = RunJob(pool, [&](Job& job) { return loss.Prepare(args, job); });
  if (status.ok()) result = loss.result();
  return status;
}

}  // namespace headwise
