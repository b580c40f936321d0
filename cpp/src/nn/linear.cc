// Layers: the dense layer.
#include "headwise/linear.h"

#include "parallel/run_job.h"

namespace headwise {

Status LinearForward::Prepare(const LinearArgs& args, Job& job) {
  if (args.rows < 0) return Status::InvalidShape("x");
  if (args.in < 0 || args.out < 0) return Status::InvalidShape("kernel");
  if (args.rows > 0 && args.in > 0 && args.x == nullptr) return Status::InvalidValue("x");
  if (args.rows > 0 && args.out > 0 && args.y == nullptr) return Status::InvalidValue("y");
  if (const Status status = kernel_.Pack(args.kernel, args.in, args.out, args.out, 1); !status.ok()) return status;
  product_ = GemmArgs{};
  product_.m = args.rows;
  product_.a = args.x;
  product_.a_row_stride = args.in;
  product_.w = &kernel_;
  product_.bias = args.bias;
  product_.c = args.y;
  product_.c_row_stride = args.out;
  return AddGemm(product_, job);
}

Status Linear(const LinearArgs& args, ThreadPool& pool) {
  LinearForward forward;
  return RunJob(pool, [&](Job& job) { return forward.Prepare(args, job); });
}

}  // namespace headwise
