// Tests: multi-head attention by its definition.
#include "layer_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace headwise::testing {
namespace {

using Doubles = std::vector<double>;

// [batch, rows, heads, size], every access checked.
struct Heads {
  std::int64_t batch, rows, heads, size;
  Doubles data;

  Heads(std::int64_t b, std::int64_t r, std::int64_t h, std::int64_t d)
      : batch(b), rows(r), heads(h), size(d), data(static_cast<std::size_t>(b * r * h * d)) {}
  double& at(std::int64_t b, std::int64_t r, std::int64_t h, std::int64_t d) {
    return data.at(static_cast<std::size_t>(((b * rows + r) * heads + h) * size + d));
  }
};

std::vector<float> Read(const MultiHeadAttention& layer, ParameterKind kind) {
  std::vector<float> values(static_cast<std::size_t>(layer.Shape(kind).elements()));
  layer.GetParameter(kind, values.data());
  return values;
}

Heads Project(const MultiHeadAttention& layer, const float* x, std::int64_t in, ParameterKind kernel_kind,
              ParameterKind bias_kind, Heads to) {
  const MultiHeadAttentionConfig& config = layer.config();
  const std::vector<float> kernel = Read(layer, kernel_kind);
  const std::vector<float> bias = Read(layer, bias_kind);
  const std::int64_t taps = config.kernel_size;
  const std::int64_t left = config.causal_convolution != 0 ? taps - 1 : (taps - 1) / 2;
  for (std::int64_t b = 0; b < to.batch; ++b) {
    for (std::int64_t i = 0; i < to.rows; ++i) {
      for (std::int64_t h = 0; h < to.heads; ++h) {
        for (std::int64_t d = 0; d < to.size; ++d) {
          double sum = bias.empty() ? 0.0 : bias.at(static_cast<std::size_t>(h * to.size + d));
          for (std::int64_t t = 0; t < taps; ++t) {
            const std::int64_t row = i + t - left;
            if (row < 0 || row >= to.rows) continue;
            for (std::int64_t c = 0; c < in; ++c) {
              const auto at = static_cast<std::size_t>(((t * in + c) * to.heads + h) * to.size + d);
              sum += static_cast<double>(x[(b * to.rows + row) * in + c]) * static_cast<double>(kernel.at(at));
            }
          }
          to.at(b, i, h, d) = sum;
        }
      }
    }
  }
  return to;
}

std::int64_t OffsetOf(const AttentionArgs& a, std::int64_t b) {
  if (a.causal_offsets != nullptr) return a.causal_offsets[b];
  return (a.kv_lengths != nullptr ? a.kv_lengths[b] : a.keys) - (a.q_lengths != nullptr ? a.q_lengths[b] : a.queries);
}

void Rotate(const MultiHeadAttentionConfig& config, Heads& x, const std::vector<std::int64_t>& first) {
  for (std::int64_t b = 0; b < x.batch; ++b) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t h = 0; h < x.heads; ++h) {
        for (std::int64_t pair = 0; pair < config.rope.dim / 2; ++pair) {
          const double angle = static_cast<double>(first.at(static_cast<std::size_t>(b)) + i) *
                               RotaryFrequency(config.rope, static_cast<std::int32_t>(pair), 0);
          const double magnitude = config.rope.scaling.magnitude;
          const bool neighbours = config.rope.interleaved != 0;
          double& a = x.at(b, i, h, neighbours ? 2 * pair : pair);
          double& c = x.at(b, i, h, neighbours ? 2 * pair + 1 : pair + config.rope.dim / 2);
          const double turned = a * std::cos(angle) - c * std::sin(angle);
          c = magnitude * (a * std::sin(angle) + c * std::cos(angle));
          a = magnitude * turned;
        }
      }
    }
  }
}

void Normalize(Heads& x) {
  for (auto row = x.data.begin(); row != x.data.end(); row += x.size) {
    double sum = 0.0;
    for (auto value = row; value != row + x.size; ++value) sum += *value * *value;
    for (auto value = row; value != row + x.size; ++value) *value /= std::max(std::sqrt(sum), 1e-12);
  }
}

bool Visible(const AttentionArgs& a, std::int64_t b, std::int64_t i, std::int64_t j) {
  if (a.q_lengths != nullptr && i >= a.q_lengths[b]) return false;
  if (a.kv_lengths != nullptr && j >= a.kv_lengths[b]) return false;
  if (a.key_padding_mask != nullptr && a.key_padding_mask[b * a.keys + j] == 0) return false;
  return a.causal == 0 || j <= i + OffsetOf(a, b);
}

}  // namespace

LayerResult LayerOracle(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args) {
  const MultiHeadAttentionConfig& c = layer.config();
  const AttentionArgs& a = args.attention;
  Heads q = Project(layer, args.query, c.embed_dim, ParameterKind::kQueryKernel, ParameterKind::kQueryBias,
                    Heads(a.batch, a.queries, c.heads, c.head_dim));
  Heads k = Project(layer, args.key, c.key_dim, ParameterKind::kKeyKernel, ParameterKind::kKeyBias,
                    Heads(a.batch, a.keys, c.kv_heads, c.head_dim));
  Heads v = Project(layer, args.value, c.value_dim, ParameterKind::kValueKernel, ParameterKind::kValueBias,
                    Heads(a.batch, a.keys, c.kv_heads, c.value_head_dim));
  if (c.rope.dim != 0) {
    std::vector<std::int64_t> positions;
    for (std::int64_t b = 0; b < a.batch; ++b) positions.push_back(OffsetOf(a, b));
    Rotate(c, q, positions);
    Rotate(c, k, std::vector<std::int64_t>(static_cast<std::size_t>(a.batch), 0));
  }
  if (c.score == LayerScore::kCosine) {
    Normalize(q);
    Normalize(k);
  }

  const std::vector<float> score_kernel = Read(layer, ParameterKind::kScoreKernel);
  Heads heads(a.batch, a.queries, c.heads, c.value_head_dim);
  LayerResult result;
  result.weights.assign(static_cast<std::size_t>(std::int64_t{a.batch} * c.heads * a.queries * a.keys), 0.0);
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t g = h / (c.heads / c.kv_heads);
      for (std::int64_t i = 0; i < a.queries; ++i) {
        double* const weights = result.weights.data() + ((b * c.heads + h) * a.queries + i) * a.keys;
        double largest = -HUGE_VAL;
        for (std::int64_t j = 0; j < a.keys; ++j) {
          if (!Visible(a, b, i, j)) continue;
          double score = 0.0;
          for (std::int64_t d = 0; d < c.head_dim; ++d) {
            const double qd = q.at(b, i, h, d);
            const double kd = k.at(b, j, g, d);
            score += c.score == LayerScore::kAdditive
                         ? static_cast<double>(score_kernel.at(static_cast<std::size_t>(h * c.head_dim + d))) *
                               std::tanh(qd + kd)
                         : qd * kd;
          }
          if (c.score == LayerScore::kScaledDot) score /= std::sqrt(static_cast<double>(c.head_dim));
          weights[j] = score;
          largest = std::max(largest, score);
        }
        double sum = 0.0;
        for (std::int64_t j = 0; j < a.keys; ++j) {
          if (Visible(a, b, i, j)) sum += weights[j] = std::exp(weights[j] - largest);
        }
        for (std::int64_t j = 0; j < a.keys; ++j) {
          if (!Visible(a, b, i, j)) continue;
          weights[j] /= sum;
          for (std::int64_t d = 0; d < c.value_head_dim; ++d) heads.at(b, i, h, d) += weights[j] * v.at(b, j, g, d);
        }
      }
    }
  }

  const std::vector<float> kernel = Read(layer, ParameterKind::kOutputKernel);
  const std::vector<float> bias = Read(layer, ParameterKind::kOutputBias);
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t i = 0; i < a.queries; ++i) {
      for (std::int64_t o = 0; o < c.output_dim; ++o) {
        double sum = bias.empty() ? 0.0 : bias.at(static_cast<std::size_t>(o));
        for (std::int64_t h = 0; h < c.heads; ++h) {
          for (std::int64_t d = 0; d < c.value_head_dim; ++d) {
            const std::int64_t row = (c.merge == MergeKind::kSum ? 0 : h * c.value_head_dim) + d;
            sum +=
                heads.at(b, i, h, d) * static_cast<double>(kernel.at(static_cast<std::size_t>(row * c.output_dim + o)));
          }
        }
        const bool padding = a.q_lengths != nullptr && i >= a.q_lengths[b];
        result.output.push_back(padding ? 0.0 : sum);
      }
    }
  }
  return result;
}

}  // namespace headwise::testing
