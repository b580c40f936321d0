// Blocks: the dense layer.
#include "headwise/linear.h"

#include "parallel/run_job.h"

namespace headwise {

Status LinearForward::Prepare(const LinearArgs& args, Job& job) {
  return convolution_.Prepare({1, args.rows, args.in, args.out, 1, 0, args.x, args.kernel, args.bias, args.y}, job);
}

Status Linear(const LinearArgs& args, ThreadPool& pool) {
  LinearForward forward;
  return RunJob(pool, [&](Job& job) { return forward.Prepare(args, job); });
}

}  // namespace headwise
