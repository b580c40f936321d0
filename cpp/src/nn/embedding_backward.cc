// Blocks: embedding lookup, backward.
#include "headwise/embedding_backward.h"

#include <algorithm>

#include "nn/column_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

void AddRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const EmbeddingBackwardArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.width);
  for (std::int64_t row = 0; !args.accumulate && row < args.vocabulary; ++row) {
    std::fill_n(args.d_table + row * args.width + columns.begin, columns.end - columns.begin, 0.0F);
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    if (args.ids[row] == args.padding) continue;
    float* to = args.d_table + std::int64_t{args.ids[row]} * args.width;
    const float* from = args.d_y + row * args.width;
    for (std::int32_t c = columns.begin; c < columns.end; ++c) to[c] += from[c] * args.scale;
  }
}

}  // namespace

Status AddEmbeddingBackward(const EmbeddingBackwardArgs& args, Job& job) {
  if (args.rows < 0 || args.vocabulary < 0 || args.width < 0) return Status::InvalidShape("table");
  if (args.rows > 0 && args.ids == nullptr) return Status::InvalidValue("ids");
  for (std::int32_t row = 0; row < args.rows; ++row) {
    if (args.ids[row] < 0 || args.ids[row] >= args.vocabulary) return Status::InvalidValue("ids");
  }
  if (args.width == 0 || args.vocabulary == 0) return Status::Ok();
  if (args.rows > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (args.d_table == nullptr) return Status::InvalidValue("d_table");
  return job.AddPhase(ColumnBlocks(args.width), AddRows, const_cast<EmbeddingBackwardArgs*>(&args));
}

Status EmbeddingBackward(const EmbeddingBackwardArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddEmbeddingBackward(args, job); });
}

}  // namespace headwise
