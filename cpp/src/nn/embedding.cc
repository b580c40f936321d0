// Blocks: embedding lookup.
#include "headwise/embedding.h"

#include <algorithm>

#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

Status CheckEmbedding(const EmbeddingArgs& args) {
  if (args.rows < 0 || args.vocabulary < 0 || args.width < 0) return Status::InvalidShape("table");
  if (args.rows == 0) return Status::Ok();
  if (args.ids == nullptr) return Status::InvalidValue("ids");
  for (std::int32_t row = 0; row < args.rows; ++row) {
    if (args.ids[row] < 0 || args.ids[row] >= args.vocabulary) return Status::InvalidValue("ids");
  }
  if (args.width > 0 && args.table == nullptr) return Status::InvalidValue("table");
  if (args.width > 0 && args.y == nullptr) return Status::InvalidValue("y");
  return Status::Ok();
}

void LookUpRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const EmbeddingArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.rows, args.width);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::copy_n(args.table + std::int64_t{args.ids[row]} * args.width, args.width, args.y + row * args.width);
  }
}

}  // namespace

Status AddEmbedding(const EmbeddingArgs& args, Job& job) {
  if (const Status status = CheckEmbedding(args); !status.ok()) return status;
  return job.AddPhase(args.width == 0 ? 0 : RowBlocks(args.rows, args.width), LookUpRows,
                      const_cast<EmbeddingArgs*>(&args));
}

Status Embedding(const EmbeddingArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddEmbedding(args, job); });
}

}  // namespace headwise
