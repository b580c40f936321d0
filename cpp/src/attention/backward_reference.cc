// Attention reference: the backward pass by the plain formula, in double, one row at a time: the weights P of a row, then
// dP = Z (dO . V), dS = P (dP - sum P dP). Shares nothing with the fast path.
#include <cmath>
#include <limits>
#include <new>

#include "attention/reference_rules.h"
#include "headwise/attention_backward.h"
#include "memory/aligned.h"

namespace headwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::int64_t At(const Strides& s, std::int32_t b, std::int32_t h, std::int32_t i) {
  return std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
}

struct Sums {
  double* dk;  // [B,G,S,D]
  double* dv;  // [B,G,S,Dv]
  double* d_bias;
  double* row;  // 4 S: weights, factors of dropout, slopes of the softcap, dP
};

void ReferenceRow(const AttentionBackwardArgs& args, const Sums& sums, std::int32_t b, std::int32_t h, std::int32_t i) {
  const AttentionArgs& a = args.attention;
  const std::int32_t g = h / (a.heads / a.kv_heads);
  const std::int32_t first = reference::FirstQuery(a, b);
  const std::int32_t first_key = reference::FirstKey(a, b);
  const float* q = a.q + At(a.q_strides, b, h, first + i);
  const float* d_out = args.d_out + At(a.out_strides, b, h, first + i);
  double* p = sums.row;
  double* z = p + a.keys;
  double* slope = z + a.keys;
  double* dp = slope + a.keys;

  double max = a.sinks != nullptr ? a.sinks[h] : -kInfinity;
  bool any = false;
  for (std::int32_t j = 0; j < a.keys; ++j) {
    p[j] = -kInfinity;
    if (!reference::Sees(a, b, h, i, j)) continue;
    const float* k = a.k + At(a.k_strides, b, g, first_key + j);
    double score = 0.0;
    for (std::int32_t d = 0; d < a.head_dim; ++d) score += static_cast<double>(q[d]) * k[d];
    score *= a.scale;
    slope[j] = 1.0;
    if (a.softcap > 0.0F) {
      const double t = std::tanh(score / a.softcap);
      score = a.softcap * t;
      slope[j] = 1.0 - t * t;
    }
    score += reference::Bias(a, b, h, i, j) + reference::Alibi(a, b, h, i, j);
    p[j] = score;
    any = true;
    if (!(score <= max)) max = score;
  }
  float* dq = args.dq + At(a.q_strides, b, h, first + i);
  for (std::int32_t d = 0; d < a.head_dim; ++d) dq[d] = 0.0F;
  if (!any) return;

  double denominator = a.sinks != nullptr ? std::exp(a.sinks[h] - max) : 0.0;
  for (std::int32_t j = 0; j < a.keys; ++j) denominator += p[j] == -kInfinity ? 0.0 : std::exp(p[j] - max);
  double delta = 0.0;
  for (std::int32_t j = 0; j < a.keys; ++j) {
    if (p[j] == -kInfinity) continue;
    p[j] = std::exp(p[j] - max) / denominator;
    z[j] = reference::DropoutFactor(a, b, h, i, j);
    const float* v = a.v + At(a.v_strides, b, g, first_key + j);
    dp[j] = 0.0;
    for (std::int32_t c = 0; c < a.value_dim; ++c) dp[j] += static_cast<double>(d_out[c]) * v[c];
    dp[j] *= z[j];
    delta += p[j] * dp[j];
  }
  if (args.d_sinks != nullptr) {
    args.d_sinks[h] -= static_cast<float>(std::exp(a.sinks[h] - max) / denominator * delta);
  }
  for (std::int32_t j = 0; j < a.keys; ++j) {
    if (p[j] == -kInfinity) continue;
    const std::int64_t key = (std::int64_t{b} * a.kv_heads + g) * a.keys + j;
    for (std::int32_t c = 0; c < a.value_dim; ++c) sums.dv[key * a.value_dim + c] += p[j] * z[j] * d_out[c];
    const double ds = p[j] * (dp[j] - delta);
    if (args.d_bias != nullptr) sums.d_bias[reference::At(a.bias_strides, b, h, i, j)] += ds;
    p[j] = ds * slope[j] * a.scale;
    for (std::int32_t d = 0; d < a.head_dim; ++d) sums.dk[key * a.head_dim + d] += p[j] * q[d];
  }
  for (std::int32_t d = 0; d < a.head_dim; ++d) {
    double sum = 0.0;
    for (std::int32_t j = 0; j < a.keys; ++j) {
      if (p[j] != -kInfinity) sum += p[j] * a.k[At(a.k_strides, b, g, first_key + j) + d];
    }
    dq[d] = static_cast<float>(sum);
  }
}

std::uint64_t Product(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  return CheckedMul(CheckedMul(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)),
                    CheckedMul(static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(d)));
}

}  // namespace

Status AttentionBackwardReference(const AttentionBackwardArgs& args) {
  if (Status status = CheckAttentionBackward(args); !status.ok()) return status;
  const AttentionArgs& a = args.attention;
  const BroadcastStrides& s = a.bias_strides;
  const std::uint64_t keys = Product(a.batch, a.kv_heads, a.keys, a.head_dim);
  const std::uint64_t values = Product(a.batch, a.kv_heads, a.keys, a.value_dim);
  const auto extent = [](std::int32_t stride, std::int32_t size) { return stride == 0 ? 1 : size; };
  const std::uint64_t bias = args.d_bias == nullptr ? 0
                                                    : Product(extent(s.batch, a.batch), extent(s.head, a.heads),
                                                              extent(s.row, a.queries), extent(s.column, a.keys));
  const std::uint64_t count =
      CheckedAdd(CheckedAdd(keys, values), CheckedAdd(bias, CheckedMul(4, static_cast<std::uint64_t>(a.keys))));
  const std::uint64_t bytes = CheckedMul(count, sizeof(double));
  auto* block = static_cast<double*>(AllocateAligned(bytes));
  if (block == nullptr && bytes > 0) return Status::OutOfMemory(bytes);
  for (std::uint64_t n = 0; n < count; ++n) block[n] = 0.0;
  const Sums sums{block, block + keys, block + keys + values, block + keys + values + bias};
  if (args.d_sinks != nullptr) {
    for (std::int32_t h = 0; h < a.heads; ++h) args.d_sinks[h] = 0.0F;
  }
  for (std::int32_t b = 0; b < a.batch; ++b) {
    for (std::int32_t h = 0; h < a.heads; ++h) {
      const std::int32_t rows = a.q_starts == nullptr ? a.queries : a.q_lengths[b];
      for (std::int32_t i = 0; i < rows; ++i) ReferenceRow(args, sums, b, h, i);
    }
  }
  for (std::int32_t b = 0; b < a.batch; ++b) {
    for (std::int32_t g = 0; g < a.kv_heads; ++g) {
      for (std::int32_t j = 0; j < (a.k_starts == nullptr ? a.keys : a.kv_lengths[b]); ++j) {
        const std::int64_t key = (std::int64_t{b} * a.kv_heads + g) * a.keys + j;
        float* dk = args.dk + At(a.k_strides, b, g, reference::FirstKey(a, b) + j);
        float* dv = args.dv + At(a.v_strides, b, g, reference::FirstKey(a, b) + j);
        for (std::int32_t d = 0; d < a.head_dim; ++d) dk[d] = static_cast<float>(sums.dk[key * a.head_dim + d]);
        for (std::int32_t c = 0; c < a.value_dim; ++c) dv[c] = static_cast<float>(sums.dv[key * a.value_dim + c]);
      }
    }
  }
  for (std::uint64_t n = 0; n < bias; ++n) args.d_bias[n] = static_cast<float>(sums.d_bias[n]);
  FreeAligned(block);
  return Status::Ok();
}

}  // namespace headwise
