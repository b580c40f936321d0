// Blocks: sinusoidal position encodings.
#include "headwise/positional_encoding.h"

#include <cmath>

#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

constexpr double kBase = 10000.0;  // the longest wavelength, over 2 pi (Vaswani et al., 2017)

void EncodeRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const PositionalEncodingArgs*>(context);
  const RowRange rows = RowsOfBlock(index, args.length, args.width);
  // Columns outermost: the power, the dearest of the three functions, is taken once for the block.
  for (std::int64_t column = 0; column < args.width; column += 2) {
    const double wavelength = std::pow(kBase, static_cast<double>(column) / args.width);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const double angle = static_cast<double>(args.first_position + row) / wavelength;
      float* const y = args.y + row * args.width + column;
      y[0] = static_cast<float>(std::sin(angle));
      if (column + 1 < args.width) y[1] = static_cast<float>(std::cos(angle));
    }
  }
}

}  // namespace

Status AddPositionalEncoding(const PositionalEncodingArgs& args, Job& job) {
  if (args.length < 0) return Status::InvalidShape("length");
  if (args.width < 0) return Status::InvalidShape("dim");
  const bool empty = args.length == 0 || args.width == 0;
  if (!empty && args.y == nullptr) return Status::InvalidValue("y");
  return job.AddPhase(empty ? 0 : RowBlocks(args.length, args.width), EncodeRows,
                      const_cast<PositionalEncodingArgs*>(&args));
}

Status PositionalEncoding(const PositionalEncodingArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddPositionalEncoding(args, job); });
}

}  // namespace headwise
