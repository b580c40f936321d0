// Layer: vectors brought to length 1.
#include "layer/cosine.h"

#include <cmath>

#include "nn/row_blocks.h"

namespace headwise {
namespace {

constexpr double kShortest = 1e-12;  // keeps the zero vector at zero; the epsilon of torch.nn.functional.normalize

void NormalizeRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const NormalizeArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.rows, args.size);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* const x = args.x + row * args.size;
    double sum = 0.0;
    for (std::int32_t i = 0; i < args.size; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double length = std::sqrt(sum);
    const double divisor = length < kShortest ? kShortest : length;  // a NaN stays one
    for (std::int32_t i = 0; i < args.size; ++i) x[i] = static_cast<float>(static_cast<double>(x[i]) / divisor);
  }
}

}  // namespace

Status AddNormalize(NormalizeArgs& args, Job& job) {
  return job.AddPhase(RowBlocks(args.rows, args.size), NormalizeRows, &args);
}

}  // namespace headwise
