// Blocks: convolution over the sequence, backward, as products: dX is the convolution of dY with the kernel turned round,
// dKernel one product over all rows. For that, sequences are copied with their padding between them: a row and the
// kernel_size - 1 that follow it are then one row of what the product wants, and nothing is unfolded.
#include "headwise/convolution_backward.h"

#include <algorithm>
#include <limits>

#include "kernels/kernel_table.h"
#include "memory/aligned.h"
#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {

ConvolutionBackward::~ConvolutionBackward() { FreeAligned(padded_x_); }

Status ConvolutionBackward::Prepare(const ConvolutionBackwardArgs& args, Job& job) {
  if (args.batch < 0 || args.length < 0 || args.in < 0) return Status::InvalidShape("x");
  if (args.kernel_size < 1 || args.out < 0) return Status::InvalidShape("kernel");
  const std::int64_t rows = std::int64_t{args.batch} * args.length;
  const bool some = rows > 0 && args.in > 0 && args.out > 0;
  if (rows > 0 && args.out > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (some && args.d_x != nullptr && args.kernel == nullptr) return Status::InvalidValue("kernel");
  if (some && args.d_kernel != nullptr && args.x == nullptr) return Status::InvalidValue("x");
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::int64_t widest = std::max(args.in, args.out);
  if (widest > 0 && args.kernel_size > kMax / widest) return Status::InvalidShape("kernel");
  if (args.batch > 0 && Stretch(args) > kMax / args.batch) return Status::InvalidShape("x");
  args_ = args;
  if (args.d_x != nullptr) {
    if (Status status = PrepareInput(job); !status.ok()) return status;
  }
  if (args.d_kernel != nullptr) {
    if (Status status = PrepareKernel(job); !status.ok()) return status;
  }
  bias_ = {rows, args.out, args.d_y, args.d_bias, args.accumulate};
  return AddColumnSums(bias_, job);
}

Status ConvolutionBackward::PrepareInput(Job& job) {
  if (Status status = turned_.Reserve(args_.kernel_size * args_.out, args_.in); !status.ok()) return status;
  if (Status status = job.AddPhase(turned_.panel_count(), &TurnTask, this); !status.ok()) return status;
  d_x_ = PackedConvolutionArgs{};
  d_x_.batch = args_.batch;
  d_x_.length = args_.length;
  d_x_.in = args_.out;
  d_x_.kernel_size = args_.kernel_size;
  d_x_.left = args_.kernel_size - 1 - ConvolutionLeft(args_.kernel_size, args_.causal != 0);
  d_x_.x = args_.d_y;
  d_x_.kernel = &turned_;
  d_x_.y = args_.d_x;
  d_x_.accumulate = args_.accumulate_x;
  return AddPackedConvolution(d_x_, job);
}

Status ConvolutionBackward::PrepareKernel(Job& job) {
  const auto rows = static_cast<std::int32_t>(args_.batch * Stretch(args_));
  const float* x = args_.x;
  const float* d_y = args_.d_y;
  if (args_.kernel_size > 1) {
    const auto x_floats = CheckedMul(static_cast<std::uint64_t>(rows) + static_cast<std::uint64_t>(args_.kernel_size),
                                     static_cast<std::uint64_t>(args_.in));
    const auto d_y_floats = CheckedMul(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(args_.out));
    const std::uint64_t bytes = CheckedMul(CheckedAdd(x_floats, d_y_floats), sizeof(float));
    FreeAligned(padded_x_);
    padded_x_ = static_cast<float*>(AllocateAligned(bytes));
    if (padded_x_ == nullptr) return Status::OutOfMemory(bytes);
    padded_d_y_ = padded_x_ + x_floats;
    x = padded_x_;
    d_y = padded_d_y_;
    const std::int64_t blocks = RowBlocks(std::int64_t{rows} + args_.kernel_size, std::int64_t{args_.in} + args_.out);
    if (Status status = job.AddPhase(blocks, &PadTask, this); !status.ok()) return status;
  }
  ProductArgs product;
  product.m = args_.kernel_size * args_.in;
  product.n = args_.out;
  product.k = rows;
  product.a = {x, 1, args_.in};
  product.b = {d_y, args_.out, 1};
  product.c = args_.d_kernel;
  product.c_row_stride = args_.out;
  product.accumulate = args_.accumulate;
  return d_kernel_.Prepare(product, job);
}

// A panel of the kernel [kernel_size, in, out] as [kernel_size, out, in], the last tap first.
void ConvolutionBackward::TurnTask(void* context, std::int64_t index, int /*thread*/) {
  auto& self = *static_cast<ConvolutionBackward*>(context);
  const ConvolutionBackwardArgs& args = self.args_;
  for (std::int32_t tap = 0; tap < args.kernel_size; ++tap) {
    const std::int64_t from = args.kernel_size - 1 - tap;
    self.turned_.PackPanel(index, args.kernel + from * args.in * args.out, 1, args.out, tap * args.out, args.out);
  }
}

// Rows of the padded copies: of x, shifted by the padding on the left, as many as there are and kernel_size more; of dY as
// they are. All else is 0.
void ConvolutionBackward::PadTask(void* context, std::int64_t index, int /*thread*/) {
  const auto& self = *static_cast<const ConvolutionBackward*>(context);
  const ConvolutionBackwardArgs& args = self.args_;
  const std::int64_t stretch = Stretch(args);
  const std::int32_t left = ConvolutionLeft(args.kernel_size, args.causal != 0);
  const auto copy = [&](const float* from, std::int64_t row, std::int64_t shift, std::int32_t width, float* to) {
    const std::int64_t b = row / stretch;
    const std::int64_t i = row % stretch - shift;
    if (b < args.batch && i >= 0 && i < args.length) {
      std::copy_n(from + (b * args.length + i) * width, width, to + row * width);
    } else {
      std::fill_n(to + row * width, width, 0.0F);
    }
  };
  const std::int64_t count = args.batch * stretch;
  const RowRange rows = RowsOfBlock(index, count + args.kernel_size, std::int64_t{args.in} + args.out);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    copy(args.x, row, left, args.in, self.padded_x_);
    if (row < count) copy(args.d_y, row, 0, args.out, self.padded_d_y_);
  }
}

Status RunConvolutionBackward(const ConvolutionBackwardArgs& args, ThreadPool& pool) {
  ConvolutionBackward backward;
  return RunJob(pool, [&](Job& job) { return backward.Prepare(args, job); });
}

}  // namespace headwise
