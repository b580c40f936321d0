// Blocks: layer and RMS normalisation. Sums are in double: they cost little beside the row, and mean and variance lose
// nothing to cancellation.
#include "headwise/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernel_table.h"
#include "nn/column_blocks.h"
#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

// The sum of term(c) over a row, in four sums, so that an addition need not wait for the one before.
template <class Term>
double SumOfRow(std::int32_t width, Term term) {
  double sums[4] = {};
  std::int32_t c = 0;
  for (; c + 4 <= width; c += 4) {
    for (std::int32_t i = 0; i < 4; ++i) sums[i] += term(c + i);
  }
  for (; c < width; ++c) sums[0] += term(c);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void NormalizeRow(const NormArgs& args, std::int64_t row) {
  const float* x = args.x + row * args.width;
  float* y = args.y + row * args.width;
  double mean = 0.0;
  if (args.kind == NormKind::kLayer) {
    mean = SumOfRow(args.width, [&](std::int32_t c) { return static_cast<double>(x[c]); }) / args.width;
  }
  const double squares = SumOfRow(args.width, [&](std::int32_t c) { return (x[c] - mean) * (x[c] - mean); });
  const double inverse = 1.0 / std::sqrt(squares / args.width + args.epsilon);
  // A row of equal numbers is 0 also where epsilon is.
  const double factor = squares == 0.0 ? 0.0 : inverse;
  for (std::int32_t c = 0; c < args.width; ++c) {
    const double gain = args.gain != nullptr ? args.gain[c] : 1.0;
    const double shift = args.shift != nullptr ? args.shift[c] : 0.0;
    y[c] = static_cast<float>((x[c] - mean) * factor * gain + shift);
  }
  if (args.mean != nullptr) args.mean[row] = static_cast<float>(mean);
  if (args.inverse != nullptr) args.inverse[row] = static_cast<float>(inverse);
}

void NormalizeRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const NormArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.rows, args.width);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) NormalizeRow(args, row);
}

double MeanOf(const NormBackwardArgs& args, std::int64_t row) { return args.mean != nullptr ? args.mean[row] : 0.0; }

void BackRow(const NormBackwardArgs& args, std::int64_t row) {
  const float* x = args.x + row * args.width;
  const float* d_y = args.d_y + row * args.width;
  float* d_x = args.d_x + row * args.width;
  const double mean = MeanOf(args, row);
  const double inverse = args.inverse[row];
  const auto gradient = [&](std::int32_t c) {
    return d_y[c] * (args.gain != nullptr ? static_cast<double>(args.gain[c]) : 1.0);
  };
  const double sum = args.kind == NormKind::kLayer ? SumOfRow(args.width, gradient) / args.width : 0.0;
  const double product =
      SumOfRow(args.width, [&](std::int32_t c) { return gradient(c) * (x[c] - mean) * inverse; }) / args.width;
  for (std::int32_t c = 0; c < args.width; ++c) {
    d_x[c] = static_cast<float>(inverse * (gradient(c) - sum - (x[c] - mean) * inverse * product));
  }
}

void BackRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const NormBackwardArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.rows, args.width);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) BackRow(args, row);
}

void SumColumns(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const NormBackwardArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.width);
  double gains[kColumnBlock] = {};
  double shifts[kColumnBlock] = {};
  const kernels::KernelTable& table = kernels::Kernels();
  const int count = columns.end - columns.begin;
  const float* d_y = args.d_y + columns.begin;
  table.sum_normalized(d_y, args.x + columns.begin, args.width, args.rows, count, args.mean, args.inverse, gains);
  if (args.d_shift != nullptr) table.sum_columns(d_y, args.width, args.rows, count, shifts);
  StoreColumns(columns, gains, args.accumulate, args.d_gain);
  StoreColumns(columns, shifts, args.accumulate, args.d_shift);
}

}  // namespace

Status AddNorm(const NormArgs& args, Job& job) {
  if (args.rows < 0 || args.width < 0) return Status::InvalidShape("x");
  if (!(args.epsilon >= 0.0F)) return Status::InvalidValue("epsilon");
  if (args.rows == 0 || args.width == 0) return Status::Ok();
  if (args.x == nullptr) return Status::InvalidValue("x");
  if (args.y == nullptr) return Status::InvalidValue("y");
  if (args.kind == NormKind::kRms && args.shift != nullptr) return Status::InvalidValue("shift");
  return job.AddPhase(RowBlocks(args.rows, args.width), NormalizeRows, const_cast<NormArgs*>(&args));
}

Status Norm(const NormArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddNorm(args, job); });
}

Status AddNormBackward(const NormBackwardArgs& args, Job& job) {
  if (args.rows < 0 || args.width < 0) return Status::InvalidShape("x");
  if (args.width == 0) return Status::Ok();
  if (args.rows > 0 && args.x == nullptr) return Status::InvalidValue("x");
  if (args.rows > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (args.rows > 0 && args.inverse == nullptr) return Status::InvalidValue("inverse");
  if (args.rows > 0 && (args.kind == NormKind::kLayer) != (args.mean != nullptr)) return Status::InvalidValue("mean");
  auto* const context = const_cast<NormBackwardArgs*>(&args);
  if (args.d_gain != nullptr || args.d_shift != nullptr) {
    if (Status status = job.AddPhase(ColumnBlocks(args.width), SumColumns, context); !status.ok()) return status;
  }
  return job.AddPhase(args.d_x == nullptr ? 0 : RowBlocks(args.rows, args.width), BackRows, context);
}

Status NormBackward(const NormBackwardArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddNormBackward(args, job); });
}

}  // namespace headwise
