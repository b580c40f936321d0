// Blocks: the dense layer, backward.
#include "headwise/linear_backward.h"

#include "parallel/run_job.h"

namespace headwise {

Status LinearBackward::Prepare(const LinearBackwardArgs& args, Job& job) {
  ConvolutionBackwardArgs one_tap;
  one_tap.batch = 1;
  one_tap.length = args.rows;
  one_tap.in = args.in;
  one_tap.out = args.out;
  one_tap.x = args.x;
  one_tap.kernel = args.kernel;
  one_tap.d_y = args.d_y;
  one_tap.d_x = args.d_x;
  one_tap.d_kernel = args.d_kernel;
  one_tap.d_bias = args.d_bias;
  one_tap.accumulate_x = args.accumulate_x;
  one_tap.accumulate = args.accumulate;
  return convolution_.Prepare(one_tap, job);
}

Status RunLinearBackward(const LinearBackwardArgs& args, ThreadPool& pool) {
  LinearBackward backward;
  return RunJob(pool, [&](Job& job) { return backward.Prepare(args, job); });
}

}  // namespace headwise
