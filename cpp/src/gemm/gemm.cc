// Driver: the matrix product as a phase of independent blocks of C.
#include "headwise/gemm.h"

#include "gemm/block.h"
#include "gemm/plan.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

Status CheckGemm(const GemmArgs& args) {
  if (args.m < 0) return Status::InvalidShape("m");
  if (args.w == nullptr) return Status::InvalidValue("w");
  if (args.m == 0 || args.w->columns() == 0) return Status::Ok();
  if (args.a == nullptr && args.w->rows() > 0) return Status::InvalidValue("a");
  if (args.c == nullptr) return Status::InvalidValue("c");
  return Status::Ok();
}

GemmPlan PlanOf(const GemmArgs& args) { return PlanGemm(args.m, args.w->columns(), args.w->rows(), TileOfProducts()); }

void ComputeBlock(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const GemmArgs*>(context);
  const GemmPlan plan = PlanOf(args);
  const GemmBlock block = BlockOfTask(plan, args.m, args.w->columns(), index);
  float* const c = args.c + block.row_begin * args.c_row_stride;
  if (!args.accumulate) FillBlock(block, args.bias, c, args.c_row_stride);
  MultiplyBlock(*args.w, 0, args.w->rows(), plan.k_block, block, block.row_end - block.row_begin,
                args.a + block.row_begin * args.a_row_stride, args.a_row_stride, c, args.c_row_stride);
}

}  // namespace

Status AddGemm(const GemmArgs& args, Job& job) {
  if (const Status status = CheckGemm(args); !status.ok()) return status;
  const double flops = 2.0 * double(args.m) * args.w->columns() * args.w->rows();
  return job.AddPhase(PlanOf(args).tasks(), ComputeBlock, const_cast<GemmArgs*>(&args), flops);
}

Status Gemm(const GemmArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddGemm(args, job); });
}

}  // namespace headwise
