// Attention driver: joins parts over disjoint keys by their log-sum-exps.
#include "headwise/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel/run_job.h"

namespace headwise {
namespace {

// Rows of a task: as many numbers of all parts as take about a millisecond.
constexpr std::int64_t kMostRows = 64;
constexpr std::int64_t kTaskNumbers = std::int64_t{1} << 20;

std::int64_t RowsOfMergeTask(const MergeArgs& args) {
  const std::int64_t numbers = std::int64_t{args.parts} * (std::int64_t{args.size} + 1);
  return std::clamp<std::int64_t>(kTaskNumbers / numbers, 1, kMostRows);
}

constexpr float kNoKey = -std::numeric_limits<float>::infinity();

class RowMerge {
 public:
  RowMerge(const MergeArgs& args, std::int64_t row) : args_(args), row_(row) {
    const Strides& out = args.out_strides;
    const bool same = out.batch == 0 && out.head == 0 && out.row == 0;
    place_ = Place(args.strides);
    out_place_ = same ? place_ : Place(out);
  }

  void Run() {
    float* const out = args_.out + out_place_;
    std::fill_n(out, args_.size, 0.0F);
    double top = kNoKey;
    for (std::int32_t n = 0; n < args_.parts; ++n) {
      const double l = LogSumExp(n);
      if (l > top || std::isnan(l)) top = l;  // a NaN stays: nothing is above it
    }
    if (top == kNoKey) {
      args_.log_sum_exp[row_] = kNoKey;
      return;
    }
    double sum = 0.0;
    for (std::int32_t n = 0; n < args_.parts; ++n) sum += Share(n, top);
    const double sink = args_.sinks == nullptr ? 0.0 : std::exp(args_.sinks[row_ / args_.rows % args_.heads] - top);
    for (std::int32_t n = 0; n < args_.parts; ++n) {
      if (LogSumExp(n) == kNoKey) continue;
      const auto share = static_cast<float>(Share(n, top) / (sum + sink));
      const float* const part = args_.outputs + n * Rows() * args_.size + place_;
      for (std::int32_t c = 0; c < args_.size; ++c) out[c] += share * part[c];
    }
    args_.log_sum_exp[row_] = static_cast<float>(top + std::log(sum));
  }

 private:
  std::int64_t Place(const Strides& strides) const {
    const std::int64_t head_row = row_ / args_.rows;
    return head_row / args_.heads * strides.batch + head_row % args_.heads * strides.head +
           row_ % args_.rows * strides.row;
  }
  std::int64_t Rows() const { return std::int64_t{args_.batch} * args_.heads * args_.rows; }
  double LogSumExp(std::int32_t n) const { return args_.log_sum_exps[n * Rows() + row_]; }
  double Share(std::int32_t n, double top) const { return LogSumExp(n) == kNoKey ? 0.0 : std::exp(LogSumExp(n) - top); }

  const MergeArgs& args_;
  std::int64_t row_;
  std::int64_t place_;
  std::int64_t out_place_;
};

std::int64_t RowsOf(const MergeArgs& args) { return std::int64_t{args.batch} * args.heads * args.rows; }

void MergeRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const MergeArgs*>(context);
  const std::int64_t of_task = RowsOfMergeTask(args);
  const std::int64_t end = std::min(RowsOf(args), (index + 1) * of_task);
  for (std::int64_t row = index * of_task; row < end; ++row) RowMerge(args, row).Run();
}

}  // namespace

Status AddMerge(const MergeArgs& args, Job& job) {
  if (args.parts < 1) return Status::InvalidShape("parts");
  if (args.batch < 0 || args.heads < 0 || args.rows < 0 || args.size < 0) return Status::InvalidShape("outputs");
  const std::int64_t rows = RowsOf(args);
  if (rows > 0 && (args.log_sum_exps == nullptr || args.log_sum_exp == nullptr)) {
    return Status::InvalidValue("log_sum_exps");
  }
  if (rows > 0 && args.size > 0 && (args.outputs == nullptr || args.out == nullptr)) {
    return Status::InvalidValue("outputs");
  }
  const std::int64_t of_task = RowsOfMergeTask(args);
  return job.AddPhase((rows + of_task - 1) / of_task, MergeRows, const_cast<MergeArgs*>(&args));
}

Status Merge(const MergeArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddMerge(args, job); });
}

}  // namespace headwise
