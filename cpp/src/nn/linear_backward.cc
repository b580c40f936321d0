// Layers: the dense layer, backward: two products and a sum over rows.
#include "headwise/linear_backward.h"

#include "nn/column_blocks.h"
#include "parallel/run_job.h"

namespace headwise {

Status LinearBackward::Prepare(const LinearBackwardArgs& args, Job& job) {
  if (args.rows < 0) return Status::InvalidShape("x");
  if (args.in < 0 || args.out < 0) return Status::InvalidShape("kernel");
  const bool some = args.rows > 0 && args.out > 0;
  if (some && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (some && args.in > 0 && args.d_kernel != nullptr && args.x == nullptr) return Status::InvalidValue("x");
  if (some && args.in > 0 && args.d_x != nullptr && args.kernel == nullptr) return Status::InvalidValue("kernel");
  args_ = args;
  if (args.d_x != nullptr) {
    ProductArgs product;
    product.m = args.rows;
    product.n = args.in;
    product.k = args.out;
    product.a = {args.d_y, args.out, 1};
    product.b = {args.kernel, 1, args.out};
    product.c = args.d_x;
    product.c_row_stride = args.in;
    product.accumulate = args.accumulate_x;
    if (Status status = d_x_.Prepare(product, job); !status.ok()) return status;
  }
  if (args.d_kernel != nullptr) {
    ProductArgs product;
    product.m = args.in;
    product.n = args.out;
    product.k = args.rows;
    product.a = {args.x, 1, args.in};
    product.b = {args.d_y, args.out, 1};
    product.c = args.d_kernel;
    product.c_row_stride = args.out;
    product.accumulate = args.accumulate;
    if (Status status = d_kernel_.Prepare(product, job); !status.ok()) return status;
  }
  return job.AddPhase(args.d_bias == nullptr ? 0 : ColumnBlocks(args.out), &SumBias, this);
}

void LinearBackward::SumBias(void* context, std::int64_t index, int /*thread*/) {
  const LinearBackwardArgs& args = static_cast<const LinearBackward*>(context)->args_;
  const ColumnRange columns = ColumnsOfBlock(index, args.out);
  double sums[kColumnBlock] = {};
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) sums[c - columns.begin] += args.d_y[row * args.out + c];
  }
  StoreColumns(columns, sums, args.accumulate, args.d_bias);
}

Status RunLinearBackward(const LinearBackwardArgs& args, ThreadPool& pool) {
  LinearBackward backward;
  return RunJob(pool, [&](Job& job) { return backward.Prepare(args, job); });
}

}  // namespace headwise
