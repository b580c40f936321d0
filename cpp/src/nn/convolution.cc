// Blocks: convolution over the sequence, as one shifted product for each tap of the kernel.
#include "headwise/convolution.h"

#include <algorithm>
#include <limits>

#include "gemm/block.h"
#include "gemm/plan.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

Status CheckConvolution(const PackedConvolutionArgs& args) {
  if (args.batch < 0 || args.length < 0 || args.in < 0) return Status::InvalidShape("x");
  if (args.kernel_size < 1) return Status::InvalidShape("kernel");
  if (args.left < 0 || args.left >= args.kernel_size) return Status::InvalidValue("left");
  if (args.kernel == nullptr) return Status::InvalidValue("kernel");
  if (args.kernel->rows() != std::int64_t{args.kernel_size} * args.in) return Status::InvalidShape("kernel");
  if (args.batch == 0 || args.length == 0 || args.kernel->columns() == 0) return Status::Ok();
  if (args.x == nullptr && args.in > 0) return Status::InvalidValue("x");
  if (args.y == nullptr) return Status::InvalidValue("y");
  return Status::Ok();
}

// A plan for one sequence; a task never spans two.
GemmPlan PlanOf(const PackedConvolutionArgs& args) {
  return PlanGemm(args.length, args.kernel->columns(), args.kernel->rows(), TileOfProducts());
}

void ConvolveBlock(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const PackedConvolutionArgs*>(context);
  const GemmPlan plan = PlanOf(args);
  const std::int64_t first_row = index / plan.tasks() * args.length;
  const std::int32_t columns = args.kernel->columns();
  const GemmBlock block = BlockOfTask(plan, args.length, columns, index % plan.tasks());
  float* const y = args.y + first_row * columns;
  if (!args.accumulate) FillBlock(block, args.bias, y + std::int64_t{block.row_begin} * columns, columns);
  for (std::int32_t tap = 0; tap < args.kernel_size; ++tap) {
    const std::int64_t shift = std::int64_t{tap} - args.left;
    const auto begin = std::max<std::int64_t>(block.row_begin, -shift);
    const auto end = std::min<std::int64_t>(block.row_end, args.length - shift);
    if (begin >= end) continue;
    MultiplyBlock(*args.kernel, tap * args.in, args.in, plan.k_block, block, static_cast<std::int32_t>(end - begin),
                  args.x + (first_row + begin + shift) * args.in, args.in, y + begin * columns, columns);
  }
}

}  // namespace

Status AddPackedConvolution(const PackedConvolutionArgs& args, Job& job) {
  if (const Status status = CheckConvolution(args); !status.ok()) return status;
  const double flops = 2.0 * args.batch * args.length * args.kernel->rows() * args.kernel->columns();
  return job.AddPhase(args.batch * PlanOf(args).tasks(), ConvolveBlock, const_cast<PackedConvolutionArgs*>(&args),
                      flops);
}

Status ConvolutionForward::Prepare(const ConvolutionArgs& args, Job& job) {
  if (args.batch < 0 || args.length < 0 || args.in < 0) return Status::InvalidShape("x");
  if (args.kernel_size < 1 || args.out < 0) return Status::InvalidShape("kernel");
  const std::int64_t rows = std::int64_t{args.kernel_size} * args.in;
  if (rows > std::numeric_limits<std::int32_t>::max()) return Status::InvalidShape("kernel");
  const Status status = kernel_.Pack(args.kernel, static_cast<std::int32_t>(rows), args.out, args.out, 1);
  if (!status.ok()) return status;
  product_ = PackedConvolutionArgs{};
  product_.batch = args.batch;
  product_.length = args.length;
  product_.in = args.in;
  product_.kernel_size = args.kernel_size;
  product_.left = ConvolutionLeft(args.kernel_size, args.causal != 0);
  product_.x = args.x;
  product_.kernel = &kernel_;
  product_.bias = args.bias;
  product_.y = args.y;
  return AddPackedConvolution(product_, job);
}

Status Convolution(const ConvolutionArgs& args, ThreadPool& pool) {
  ConvolutionForward forward;
  return RunJob(pool, [&](Job& job) { return forward.Prepare(args, job); });
}

}  // namespace headwise
