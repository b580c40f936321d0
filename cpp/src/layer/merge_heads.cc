// Layer: heads summed, weights averaged, padding cleared.
#include "layer/merge_heads.h"

#include <algorithm>

#include "nn/row_blocks.h"

namespace headwise {
namespace {

void SumRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const SumHeadsArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.rows, std::int64_t{args.heads} * args.size);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* const sum = args.x + row * args.heads * args.size;
    for (std::int64_t head = 1; head < args.heads; ++head) {
      const float* const addend = sum + head * args.size;
      for (std::int32_t i = 0; i < args.size; ++i) sum[i] += addend[i];
    }
  }
}

// A task treats a block of one batch entry's queries.
void AverageRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const AverageWeightsArgs*>(context);
  const std::int64_t numbers = std::int64_t{args.heads} * args.keys;
  const std::int64_t blocks = RowBlocks(args.queries, numbers);
  const std::int64_t batch = index / blocks;
  const RowRange rows = RowsOfBlock(index % blocks, args.queries, numbers);
  const std::int64_t plane = std::int64_t{args.queries} * args.keys;
  const std::int64_t begin = rows.begin * args.keys;
  const std::int64_t end = rows.end * args.keys;
  const float* const weights = args.weights + batch * args.heads * plane;
  float* const average = args.average + batch * plane;
  for (std::int64_t i = begin; i < end; ++i) {
    double sum = 0.0;
    for (std::int64_t head = 0; head < args.heads; ++head) sum += static_cast<double>(weights[head * plane + i]);
    average[i] = static_cast<float>(sum / args.heads);
  }
  if (args.selected == nullptr) return;
  float* const selected = args.selected + batch * args.selection_count * plane;
  for (std::int64_t n = 0; n < args.selection_count; ++n) {
    const float* const from = weights + args.selection[n] * plane;
    std::copy(from + begin, from + end, selected + n * plane + begin);
  }
}

// A task clears what is padding in a block of one batch entry's rows.
void ClearRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const ClearPaddingArgs*>(context);
  const std::int64_t blocks = RowBlocks(args.rows, args.size);
  const std::int64_t batch = index / blocks;
  const RowRange rows = RowsOfBlock(index % blocks, args.rows, args.size);
  const std::int64_t begin = std::max(rows.begin, std::int64_t{args.lengths[batch]});
  float* const y = args.y + batch * args.rows * args.size;
  if (begin < rows.end) std::fill(y + begin * args.size, y + rows.end * args.size, 0.0F);
}

}  // namespace

Status AddSumHeads(SumHeadsArgs& args, Job& job) {
  return job.AddPhase(RowBlocks(args.rows, std::int64_t{args.heads} * args.size), SumRows, &args);
}

Status AddAverageWeights(AverageWeightsArgs& args, Job& job) {
  return job.AddPhase(args.batch * RowBlocks(args.queries, std::int64_t{args.heads} * args.keys), AverageRows, &args);
}

Status AddClearPadding(ClearPaddingArgs& args, Job& job) {
  return job.AddPhase(args.batch * RowBlocks(args.rows, args.size), ClearRows, &args);
}

}  // namespace headwise
