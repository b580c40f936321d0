// Attention driver: backward, what lies around the tiles: zeros, the rows' shift and delta, the sums over all of them.
//
// A weight is exp(score - log-sum-exp), as long as the log-sum-exp holds digits enough: as float32 number of size 64 it is off
// by 2^-19, one of 1e10 by more than the logarithm of any number of keys. Where one is larger, maximum and sum are formed
// anew for the whole block of rows, as the forward pass formed them, from which weights follow that are as exact as its own.
// So are rows that see one key only: its weight then is exactly 1, and its gradient exactly 0.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/backward_call.h"
#include "attention/finish_row.h"
#include "attention/sole_key.h"
#include "attention/tasks.h"

namespace headwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestLogSumExp = 64.0;

// log(e^lse + e^sink), natural.
double WithSink(double lse, double sink) {
  const double top = std::max(lse, sink);
  return top + std::log(std::exp(lse - top) + std::exp(sink - top));
}

// Whether a row's log-sum-exp, with the sink, says too little; one of NaN does.
bool NeedsSums(const AttentionBackwardCall& call, const Visibility& visibility, std::int32_t b, std::int32_t h,
               std::int32_t i) {
  const AttentionArgs& a = call.attention();
  double lse = *call.forward.LogSumExp(b, h, i);
  if (lse == -kInfinity) return false;
  if (a.sinks != nullptr) lse = WithSink(lse, a.sinks[h]);
  if (!(std::fabs(lse) <= kLargestLogSumExp)) return true;
  return a.sinks == nullptr && SeesOneKeyAtMost(a, visibility, b, h, i);
}

// `exact`: shift and factor are still to come.
void StartRow(const AttentionBackwardCall& call, std::int32_t b, std::int32_t h, std::int32_t i, bool exact) {
  const AttentionArgs& a = call.attention();
  const std::int64_t row = call.Row(b, h, i);
  double lse = *call.forward.LogSumExp(b, h, i);
  call.factor[row] = exact ? 1.0F : -1.0F;
  call.shift[row] = static_cast<float>(kInfinity);
  call.delta[row] = 0.0F;
  if (call.args.d_sinks != nullptr) call.sink_weights[row] = 0.0F;
  if (lse == -kInfinity) return;
  if (!exact) {
    if (a.sinks != nullptr) lse = WithSink(lse, a.sinks[h]);
    if (call.args.d_sinks != nullptr) call.sink_weights[row] = static_cast<float>(std::exp(a.sinks[h] - lse));
    call.shift[row] = static_cast<float>(lse);
  }
  const float* d_out = call.args.d_out + call.forward.OutputOffset(b, h, i);
  const float* out = call.forward.Output(b, h, i);
  double delta = 0.0;
  for (std::int32_t c = 0; c < a.value_dim; ++c) delta += static_cast<double>(d_out[c]) * out[c];
  call.delta[row] = static_cast<float>(delta);
}

// Joins the heads' sums over `extent` rows or columns, whose element of the bias is `stride` apart.
void JoinBias(const AttentionBackwardCall& call, std::int32_t extent, std::int32_t stride) {
  const AttentionArgs& a = call.attention();
  const BroadcastStrides& s = a.bias_strides;
  const std::int32_t batches = BiasExtent(s.batch, a.batch);
  const std::int32_t heads = BiasExtent(s.head, a.heads);
  const std::int32_t elements = BiasExtent(stride, extent);
  for (std::int32_t tb = 0; tb < batches; ++tb) {
    for (std::int32_t th = 0; th < heads; ++th) {
      for (std::int32_t tx = 0; tx < elements; ++tx) {
        double sum = 0.0;
        for (std::int32_t b = tb; b < (s.batch == 0 ? a.batch : tb + 1); ++b) {
          for (std::int32_t h = th; h < (s.head == 0 ? a.heads : th + 1); ++h) {
            const float* sums = call.bias_sums + (std::int64_t{b} * a.heads + h) * extent;
            for (std::int32_t x = tx; x < (stride == 0 ? extent : tx + 1); ++x) sum += sums[x];
          }
        }
        call.args.d_bias[std::int64_t{tb} * s.batch + std::int64_t{th} * s.head + std::int64_t{tx} * stride] =
            static_cast<float>(sum);
      }
    }
  }
}

}  // namespace

void BackwardStartTask(void* context, std::int64_t index, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const std::int64_t first = index * kZerosOfTask;
  std::fill_n(call.zeros + first, std::min(kZerosOfTask, call.zero_count - first), 0.0F);
}

void BackwardRowsTask(void* context, std::int64_t index, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const AttentionArgs& a = call.attention();
  const std::int64_t tasks = (std::int64_t{a.queries} + call.plan.delta_rows - 1) / call.plan.delta_rows;
  const auto b = static_cast<std::int32_t>(index / tasks / a.heads);
  const auto h = static_cast<std::int32_t>(index / tasks % a.heads);
  const std::int64_t end = std::min<std::int64_t>((index % tasks + 1) * call.plan.delta_rows, call.forward.Queries(b));
  const Visibility visibility(a, b);
  for (std::int64_t first = index % tasks * call.plan.delta_rows; first < end; first += call.plan.block_rows) {
    const auto begin = static_cast<std::int32_t>(first);
    const auto last = static_cast<std::int32_t>(std::min<std::int64_t>(first + call.plan.block_rows, end));
    bool exact = false;
    for (std::int32_t i = begin; i < last && !exact; ++i) exact = NeedsSums(call, visibility, b, h, i);
    for (std::int32_t i = begin; i < last; ++i) StartRow(call, b, h, i, exact);
  }
}

void BackwardSumsTask(void* context, std::int64_t index, int thread) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const auto [b, h, first, last] = RowsOfTask(call.sums, index);
  bool any = false;
  for (std::int32_t i = first; i < last; ++i) any |= call.Exact(call.Row(b, h, i));
  if (!any) return;
  float max[kMostSumRows];
  float sums[kMostSumRows];
  TiledSums(call.sums, index, thread, max, sums);
  for (std::int32_t i = first; i < last; ++i) {
    const std::int64_t row = call.Row(b, h, i);
    const float sum = sums[i - first];
    // Without a visible key the shift stays at infinity.
    if (!call.Exact(row) || sum == 0.0F) continue;
    const RowSum exact(call.sums, h, false, max[i - first], sum);
    call.shift[row] = max[i - first];
    call.factor[row] = static_cast<float>(exact.factor);
    if (call.args.d_sinks != nullptr) call.sink_weights[row] = static_cast<float>(exact.sink);
  }
}

void BackwardSinksTask(void* context, std::int64_t index, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const auto h = static_cast<std::int32_t>(index);
  double sum = 0.0;
  for (std::int32_t b = 0; b < call.attention().batch; ++b) {
    const std::int64_t row = call.Row(b, h, 0);
    for (std::int32_t i = 0; i < call.forward.Queries(b); ++i) {
      sum -= static_cast<double>(call.sink_weights[row + i]) * call.delta[row + i];
    }
  }
  call.args.d_sinks[h] = static_cast<float>(sum);
}

void BackwardBiasTask(void* context, std::int64_t /*index*/, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const AttentionArgs& a = call.attention();
  if (call.bias_mode == BiasSums::kOfRows) JoinBias(call, a.queries, a.bias_strides.row);
  if (call.bias_mode == BiasSums::kOfColumns) JoinBias(call, a.keys, a.bias_strides.column);
}

std::int64_t GradientZeros::TasksOfHead() const {
  return size == 0 ? 0 : (rows + RowsToFill(size) - 1) / RowsToFill(size);
}

void GradientZerosTask(void* context, std::int64_t index, int /*thread*/) {
  const GradientZeros& zeros = *static_cast<const GradientZeros*>(context);
  const std::int64_t tasks = zeros.TasksOfHead();
  const std::int64_t b = index / tasks / zeros.heads;
  const std::int64_t h = index / tasks % zeros.heads;
  const bool packed = zeros.starts != nullptr;
  const std::int64_t first = index % tasks * RowsToFill(zeros.size);
  const std::int64_t last =
      std::min<std::int64_t>(first + RowsToFill(zeros.size), packed ? zeros.lengths[b] : zeros.rows);
  float* const to = zeros.to + b * zeros.strides.batch + h * zeros.strides.head;
  for (std::int64_t row = first; row < last; ++row) {
    std::fill_n(to + ((packed ? zeros.starts[b] : 0) + row) * zeros.strides.row, zeros.size, 0.0F);
  }
}

}  // namespace headwise
