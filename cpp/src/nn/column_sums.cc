// Blocks: see headwise/column_sums.h.
#include "headwise/column_sums.h"

#include "kernels/kernel_table.h"
#include "nn/column_blocks.h"

namespace headwise {
namespace {

void SumBlock(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ColumnSumsArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.width);
  double sums[kColumnBlock] = {};
  kernels::Kernels().sum_columns(args.x + columns.begin, args.width, args.rows, columns.end - columns.begin, sums);
  StoreColumns(columns, sums, args.accumulate, args.sums);
}

}  // namespace

Status AddColumnSums(const ColumnSumsArgs& args, Job& job) {
  return job.AddPhase(args.sums == nullptr ? 0 : ColumnBlocks(args.width), SumBlock,
                      const_cast<ColumnSumsArgs*>(&args));
}

}  // namespace headwise
