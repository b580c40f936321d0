// Blocks: rotary position embedding.
#include "headwise/rotary.h"

#include <algorithm>
#include <cmath>

#include "nn/row_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

Status CheckRotary(const RotaryArgs& args) {
  if (args.batch < 0 || args.heads < 0 || args.rows < 0 || args.size < 0) return Status::InvalidShape("x");
  if (const Status status = CheckRotarySettings(args.rope, args.size); !status.ok()) return status;
  if (args.batch == 0 || args.heads == 0 || args.rows == 0) return Status::Ok();
  if (args.x == nullptr) return Status::InvalidValue("x");
  if (args.y == nullptr) return Status::InvalidValue("y");
  return Status::Ok();
}

std::int64_t PositionOf(const RotaryArgs& args, std::int64_t batch, std::int64_t row) {
  if (args.row_positions != nullptr) return args.row_positions[batch * args.row_positions_batch + row];
  return row + args.position + (args.positions == nullptr ? 0 : std::int64_t{args.positions[batch]});
}

std::int64_t RowsOf(const RotaryArgs& args, std::int64_t batch) {
  return args.counts == nullptr ? args.rows : args.counts[batch];
}

// Of batch entry `batch`, which decides under kDynamic and kLongRope.
std::int64_t LengthOf(const RotaryArgs& args, std::int64_t batch) {
  if (args.lengths != nullptr) return args.lengths[batch];
  const std::int64_t rows = RowsOf(args, batch);
  if (rows == 0) return 0;
  if (args.row_positions == nullptr) return PositionOf(args, batch, rows - 1) + 1;
  const std::int32_t* const first = args.row_positions + batch * args.row_positions_batch;
  return std::int64_t{*std::max_element(first, first + rows)} + 1;
}

// Every position must be in the tables.
bool TablesReach(const RotaryArgs& args) {
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t row = 0; row < RowsOf(args, batch); ++row) {
      const std::int64_t position = PositionOf(args, batch, row);
      if (position < 0 || position >= args.rope.table_rows) return false;
    }
  }
  return true;
}

std::int64_t Offset(const Strides& strides, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return batch * strides.batch + head * strides.head + row * strides.row;
}

void CopyTails(const RotaryArgs& args, std::int64_t batch, RowRange rows) {
  const std::int32_t dim = args.rope.dim;
  for (std::int64_t head = 0; head < args.heads; ++head) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::copy_n(args.x + Offset(args.x_strides, batch, head, row) + dim, args.size - dim,
                  args.y + Offset(args.y_strides, batch, head, row) + dim);
    }
  }
}

// Of a row, in all heads.
std::int64_t Numbers(const RotaryArgs& args) { return std::int64_t{args.heads} * args.size; }

// A task turns a block of rows of one batch entry, in all heads: they share their angles.
void TurnRows(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const RotaryArgs*>(context);
  const RotarySettings& rope = args.rope;
  const std::int64_t half = rope.dim / 2;
  const double direction = args.transposed != 0 ? -1.0 : 1.0;
  const std::int64_t blocks = RowBlocks(args.rows, Numbers(args));
  const std::int64_t batch = index / blocks;
  RowRange rows = RowsOfBlock(index % blocks, args.rows, Numbers(args));
  rows.end = static_cast<decltype(rows.end)>(std::min<std::int64_t>(rows.end, RowsOf(args, batch)));
  const std::int64_t pair_step = rope.interleaved != 0 ? 2 : 1;
  const std::int64_t partner = rope.interleaved != 0 ? 1 : half;
  const std::int64_t length = LengthOf(args, batch);
  for (std::int64_t pair = 0; pair < half; ++pair) {
    const double frequency = RotaryFrequency(rope, static_cast<std::int32_t>(pair), length);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t position = PositionOf(args, batch, row);
      double sine;
      double cosine;
      if (rope.cos != nullptr) {
        sine = rope.sin[position * half + pair];
        cosine = rope.cos[position * half + pair];
      } else {
        const double angle = static_cast<double>(position) * frequency;
        sine = std::sin(angle) * rope.scaling.magnitude;
        cosine = std::cos(angle) * rope.scaling.magnitude;
      }
      sine *= direction;
      for (std::int64_t head = 0; head < args.heads; ++head) {
        const float* const x = args.x + Offset(args.x_strides, batch, head, row) + pair * pair_step;
        float* const y = args.y + Offset(args.y_strides, batch, head, row) + pair * pair_step;
        const auto a = static_cast<double>(x[0]);
        const auto b = static_cast<double>(x[partner]);
        y[0] = static_cast<float>(a * cosine - b * sine);
        y[partner] = static_cast<float>(a * sine + b * cosine);
      }
    }
  }
  if (args.x != args.y) CopyTails(args, batch, rows);
}

}  // namespace

Status AddRotary(const RotaryArgs& args, Job& job) {
  if (const Status status = CheckRotary(args); !status.ok()) return status;
  if (args.rope.cos != nullptr && !TablesReach(args)) return Status::InvalidValue("positions");
  const std::int64_t tasks = args.heads == 0 ? 0 : args.batch * RowBlocks(args.rows, Numbers(args));
  const double flops = (3.0 * args.heads + 100.0) * args.batch * args.rows * args.size;  // 100: sine and cosine
  return job.AddPhase(tasks, TurnRows, const_cast<RotaryArgs*>(&args), flops);
}

Status Rotary(const RotaryArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddRotary(args, job); });
}

}  // namespace headwise
