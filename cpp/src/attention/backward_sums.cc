// Attention driver: backward, what lies around the tiles: zeros, the rows' shift and delta, the sums over all of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/backward_call.h"

namespace headwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// log(e^lse + e^sink), natural.
double WithSink(double lse, double sink) {
  const double top = std::max(lse, sink);
  return top + std::log(std::exp(lse - top) + std::exp(sink - top));
}

void SumSinks(const AttentionBackwardCall& call) {
  const AttentionArgs& a = call.attention();
  for (std::int32_t h = 0; h < a.heads; ++h) {
    const double sink = a.sinks[h];
    double sum = 0.0;
    for (std::int32_t b = 0; b < a.batch; ++b) {
      for (std::int32_t i = 0; i < call.forward.Queries(b); ++i) {
        const std::int64_t row = call.Row(b, h, i);
        const double lse = *call.forward.LogSumExp(b, h, i);
        if (lse == -kInfinity) continue;
        sum -= std::exp(sink - WithSink(lse, sink)) * call.delta[row];
      }
    }
    call.args.d_sinks[h] = static_cast<float>(sum);
  }
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

void BackwardStartTask(void* context, std::int64_t /*index*/, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const AttentionArgs& a = call.attention();
  const std::int64_t head_count = std::int64_t{a.batch} * a.heads;
  if (call.bias_mode == BiasSums::kOfRows) std::fill_n(call.bias_sums, head_count * a.queries, 0.0F);
  if (call.bias_mode == BiasSums::kOfColumns) std::fill_n(call.bias_sums, head_count * a.keys, 0.0F);
  if (call.bias_mode == BiasSums::kInPlace) {
    const BroadcastStrides& s = a.bias_strides;
    const std::int64_t count = std::int64_t{BiasExtent(s.batch, a.batch)} * BiasExtent(s.head, a.heads) *
                               BiasExtent(s.row, a.queries) * BiasExtent(s.column, a.keys);
    std::fill_n(call.args.d_bias, count, 0.0F);
  }
}

void BackwardRowsTask(void* context, std::int64_t index, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const AttentionArgs& a = call.attention();
  const auto b = static_cast<std::int32_t>(index / a.heads);
  const auto h = static_cast<std::int32_t>(index % a.heads);
  for (std::int32_t i = 0; i < call.forward.Queries(b); ++i) {
    const std::int64_t row = call.Row(b, h, i);
    double lse = *call.forward.LogSumExp(b, h, i);
    if (lse == -kInfinity) {
      call.shift[row] = static_cast<float>(kInfinity);
      call.delta[row] = 0.0F;
      continue;
    }
    if (a.sinks != nullptr) lse = WithSink(lse, a.sinks[h]);
    call.shift[row] = static_cast<float>(lse / UnitOf(call.forward.only_masks));
    const float* d_out = call.args.d_out + call.forward.OutputOffset(b, h, i);
    const float* out = call.forward.Output(b, h, i);
    double delta = 0.0;
    for (std::int32_t c = 0; c < a.value_dim; ++c) delta += static_cast<double>(d_out[c]) * out[c];
    call.delta[row] = static_cast<float>(delta);
  }
}

void BackwardFinishTask(void* context, std::int64_t /*index*/, int /*thread*/) {
  const AttentionBackwardCall& call = *static_cast<const AttentionBackwardCall*>(context);
  const AttentionArgs& a = call.attention();
  if (call.args.d_sinks != nullptr) SumSinks(call);
  if (call.bias_mode == BiasSums::kOfRows) JoinBias(call, a.queries, a.bias_strides.row);
  if (call.bias_mode == BiasSums::kOfColumns) JoinBias(call, a.keys, a.bias_strides.column);
}

}  // namespace headwise
