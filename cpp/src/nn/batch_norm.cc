// Blocks: batch normalisation, a block of columns a task.
#include "headwise/batch_norm.h"

#include <cmath>

#include "nn/column_blocks.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

struct Moments {
  double mean[kColumnBlock] = {};
  double variance[kColumnBlock] = {};
};

Moments MomentsOf(const BatchNormArgs& args, ColumnRange columns) {
  Moments m;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      m.mean[c - columns.begin] += args.x[row * args.width + c];
    }
  }
  for (double& mean : m.mean) mean /= args.rows;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      const double difference = args.x[row * args.width + c] - m.mean[c - columns.begin];
      m.variance[c - columns.begin] += difference * difference;
    }
  }
  for (double& variance : m.variance) variance /= args.rows;
  return m;
}

void UpdateRunning(const BatchNormArgs& args, ColumnRange columns, const Moments& m) {
  const double keep = 1.0 - static_cast<double>(args.momentum);
  for (std::int32_t c = columns.begin; c < columns.end; ++c) {
    const std::int32_t n = c - columns.begin;
    if (args.running_mean != nullptr) {
      args.running_mean[c] = static_cast<float>(keep * args.running_mean[c] + args.momentum * m.mean[n]);
    }
    if (args.running_variance != nullptr && args.rows > 1) {
      const double unbiased = m.variance[n] * args.rows / (args.rows - 1.0);
      args.running_variance[c] = static_cast<float>(keep * args.running_variance[c] + args.momentum * unbiased);
    }
  }
}

void Forward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const BatchNormArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.width);
  Moments m;
  if (args.training) {
    m = MomentsOf(args, columns);
    UpdateRunning(args, columns, m);
  } else {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      m.mean[c - columns.begin] = args.running_mean[c];
      m.variance[c - columns.begin] = args.running_variance[c];
    }
  }
  double factor[kColumnBlock] = {};
  for (std::int32_t c = columns.begin; c < columns.end; ++c) {
    const std::int32_t n = c - columns.begin;
    const double inverse = 1.0 / std::sqrt(m.variance[n] + args.epsilon);
    factor[n] = inverse * (args.gain != nullptr ? args.gain[c] : 1.0);
    if (args.mean != nullptr) args.mean[c] = static_cast<float>(m.mean[n]);
    if (args.inverse != nullptr) args.inverse[c] = static_cast<float>(inverse);
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      const std::int32_t n = c - columns.begin;
      const double shift = args.shift != nullptr ? args.shift[c] : 0.0;
      args.y[row * args.width + c] = static_cast<float>((args.x[row * args.width + c] - m.mean[n]) * factor[n] + shift);
    }
  }
}

void Backward(void* context, std::int64_t index, int /*thread*/) {
  const auto& args = *static_cast<const BatchNormBackwardArgs*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, args.width);
  double sums[kColumnBlock] = {};
  double products[kColumnBlock] = {};
  const auto normalized = [&args](std::int64_t row, std::int32_t c) {
    return (static_cast<double>(args.x[row * args.width + c]) - args.mean[c]) * args.inverse[c];
  };
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      const double d_y = args.d_y[row * args.width + c];
      sums[c - columns.begin] += d_y;
      products[c - columns.begin] += d_y * normalized(row, c);
    }
  }
  StoreColumns(columns, products, args.accumulate, args.d_gain);
  StoreColumns(columns, sums, args.accumulate, args.d_shift);
  for (std::int64_t row = 0; args.d_x != nullptr && row < args.rows; ++row) {
    for (std::int32_t c = columns.begin; c < columns.end; ++c) {
      const std::int32_t n = c - columns.begin;
      double g = args.d_y[row * args.width + c];
      if (args.training) g -= (sums[n] + normalized(row, c) * products[n]) / args.rows;
      const double gain = args.gain != nullptr ? args.gain[c] : 1.0;
      args.d_x[row * args.width + c] = static_cast<float>(g * args.inverse[c] * gain);
    }
  }
}

}  // namespace

Status AddBatchNorm(const BatchNormArgs& args, Job& job) {
  if (args.rows < 0 || args.width < 0) return Status::InvalidShape("x");
  if (!(args.epsilon >= 0.0F)) return Status::InvalidValue("epsilon");
  if (!(args.momentum >= 0.0F && args.momentum <= 1.0F)) return Status::InvalidValue("momentum");
  if (args.rows == 0 || args.width == 0) return Status::Ok();
  if (args.x == nullptr) return Status::InvalidValue("x");
  if (args.y == nullptr) return Status::InvalidValue("y");
  if (!args.training && args.running_mean == nullptr) return Status::InvalidValue("running_mean");
  if (!args.training && args.running_variance == nullptr) return Status::InvalidValue("running_variance");
  return job.AddPhase(ColumnBlocks(args.width), Forward, const_cast<BatchNormArgs*>(&args));
}

Status BatchNorm(const BatchNormArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddBatchNorm(args, job); });
}

Status AddBatchNormBackward(const BatchNormBackwardArgs& args, Job& job) {
  if (args.rows < 0 || args.width < 0) return Status::InvalidShape("x");
  if (args.width == 0) return Status::Ok();
  if (args.rows > 0 && args.x == nullptr) return Status::InvalidValue("x");
  if (args.rows > 0 && args.d_y == nullptr) return Status::InvalidValue("d_y");
  if (args.rows > 0 && args.mean == nullptr) return Status::InvalidValue("mean");
  if (args.rows > 0 && args.inverse == nullptr) return Status::InvalidValue("inverse");
  return job.AddPhase(ColumnBlocks(args.width), Backward, const_cast<BatchNormBackwardArgs*>(&args));
}

Status BatchNormBackward(const BatchNormBackwardArgs& args, ThreadPool& pool) {
  return RunJob(pool, [&](Job& job) { return AddBatchNormBackward(args, job); });
}

}  // namespace headwise
