// Layers: convolution over the sequence, backward. A task of dX has some rows of all sequences, one of dKernel a row [out] of
// it: nothing is added to by two.
#include "headwise/convolution_backward.h"

#include <algorithm>

#include "nn/column_blocks.h"
#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

std::int32_t RowsOnTheLeft(const ConvolutionBackwardArgs& args) {
  return args.causal != 0 ? args.kernel_size - 1 : (args.kernel_size - 1) / 2;
}

void InputRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ConvolutionBackwardArgs*>(context);
  const RowRange rows = RowsOfBlock(index, std::int64_t{args.batch} * args.length);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t j = row % args.length;
    const std::int64_t sequence = row - j;
    float* d_x = args.d_x + row * args.in;
    std::fill_n(d_x, args.in, 0.0F);
    for (std::int32_t tap = 0; tap < args.kernel_size; ++tap) {
      const std::int64_t i = j - tap + RowsOnTheLeft(args);
      if (i < 0 || i >= args.length) continue;
      const float* d_y = args.d_y + (sequence + i) * args.out;
      const float* kernel = args.kernel + std::int64_t{tap} * args.in * args.out;
      for (std::int32_t c = 0; c < args.in; ++c, kernel += args.out) {
        float sum = 0.0F;
        for (std::int32_t o = 0; o < args.out; ++o) sum += d_y[o] * kernel[o];
        d_x[c] += sum;
      }
    }
  }
}

void KernelRow(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ConvolutionBackwardArgs*>(context);
  const std::int64_t tap = index / args.in;
  const std::int64_t c = index % args.in;
  const std::int64_t shift = tap - RowsOnTheLeft(args);
  float* d_kernel = args.d_kernel + index * args.out;
  if (!args.accumulate) std::fill_n(d_kernel, args.out, 0.0F);
  const std::int64_t begin = std::max<std::int64_t>(0, -shift);
  const std::int64_t end = std::min<std::int64_t>(args.length, args.length - shift);
  for (std::int64_t b = 0; b < args.batch; ++b) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float x = args.x[(b * args.length + i + shift) * args.in + c];
      const float* d_y = args.d_y + (b * args.length + i) * args.out;
      for (std::int32_t o = 0; o < args.out; ++o) d_kernel[o] += x * d_y[o];
    }
  }
}

void SumBias(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ConvolutionBackwardArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.out);
  double sums[kColumnBlock] = {};
  for (std::int64_t row = 0; row < std::int64_t{args.batch} * args.length; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) sums[c - columns.begin] += args.d_y[row * args.out + c];
  }
  StoreColumns(columns, sums, args.accumulate, args.d_bias);
}

}  // namespace

Status AddConvolutionBackward(const ConvolutionBackwardArgs& args, Job& job) {
  if (args.batch < 0 || args.length < 0 || args.in < 0) return Status::InvalidShape("x");
  if (args.kernel_size < 1 || args.out < 0) return Status::InvalidShape("kernel");
  const std::int64_t rows = std::int64_t{args.batch} * args.length;
  const bool some = rows > 0 && args.in > 0 && args.out > 0;
  if (rows > 0 && args.out > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (some && args.d_x != nullptr && args.kernel == nullptr) return Status::InvalidValue("kernel");
  if (some && args.d_kernel != nullptr && args.x == nullptr) return Status::InvalidValue("x");
  auto* const context = const_cast<ConvolutionBackwardArgs*>(&args);
  if (args.d_x != nullptr) {
    if (Status status = job.AddPhase(RowBlocks(rows), InputRows, context); !status.ok()) return status;
  }
  if (args.d_kernel != nullptr) {
    const std::int64_t tasks = std::int64_t{args.kernel_size} * args.in;
    if (Status status = job.AddPhase(tasks, KernelRow, context); !status.ok()) return status;
  }
  return job.AddPhase(args.d_bias == nullptr ? 0 : ColumnBlocks(args.out), SumBias, context);
}

Status ConvolutionBackward(const ConvolutionBackwardArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddConvolutionBackward(args, job); });
}

}  // namespace headwise
