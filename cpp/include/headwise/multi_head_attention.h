// Public: the multi-head attention layer (Vaswani et al., 2017): query, key and value are projected to heads, attended,
// merged and projected once more. Everything is float32, row-major, [B, L, E].
//
// Start reading at MultiHeadAttentionForward::Prepare; the layer object holds the parameters only.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/rotary.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

enum class MergeKind : std::int32_t {
  kConcat = 0,  // heads side by side: [H * Dv]
  kSum = 1,     // heads added: [Dv]
};

enum class ProjectionKind : std::int32_t {
  kDense = 0,
  kConvolution = 1,  // over the sequence, see headwise/convolution.h
};

enum class LayerScore : std::int32_t {
  kScaledDot = 0,  // q.k / sqrt(D)
  kDot = 1,        // q.k
  kCosine = 2,     // q.k / (max(|q|, 1e-12) max(|k|, 1e-12))
  kAdditive = 3,   // sum_d a_d tanh(q_d + k_d), a learnt for each head (Bahdanau et al., 2015)
};

// The shape of a layer. Fixed-width fields only. A size of 0 stands for the default that is named beside it.
struct MultiHeadAttentionConfig {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/multi_head_attention_config.def"  // its fields and what they mean
};

// Fills in the defaults and checks that everything fits together; the name of the offending field is the status'
// argument.
Status ResolveConfig(MultiHeadAttentionConfig& config);

// Parameters and their layouts. A kernel's flat order is what GetParameter gives and SetParameters takes.
enum class ParameterKind : std::int32_t {
  kQueryKernel = 0,   // [E, H, D], with a convolution [kernel_size, E, H, D]
  kQueryBias = 1,     // [H, D]
  kKeyKernel = 2,     // [key_dim, G, D] or [kernel_size, key_dim, G, D]
  kKeyBias = 3,       // [G, D]
  kValueKernel = 4,   // [value_dim, G, Dv] or [kernel_size, value_dim, G, Dv]
  kValueBias = 5,     // [G, Dv]
  kOutputKernel = 6,  // [H, Dv, output_dim], with kSum [1, Dv, output_dim]
  kOutputBias = 7,    // [output_dim]
  kScoreKernel = 8,   // [H, D], with kAdditive
};
inline constexpr int kParameterKinds = 9;

// rank 0: the layer has no such parameter. Axes past the rank are 1.
struct ParameterShape {
  std::int32_t rank = 0;
  std::int32_t axes[4] = {1, 1, 1, 1};
  constexpr std::int64_t elements() const {
    return rank == 0 ? 0 : std::int64_t{axes[0]} * axes[1] * axes[2] * axes[3];
  }
};
// `config` is a resolved one.
ParameterShape ShapeOfParameter(const MultiHeadAttentionConfig& config, ParameterKind kind);

using ParameterPointers = const float* [kParameterKinds];

// One source a kind, indexed by ParameterKind; null: keep what is there.
struct ParameterSources {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/parameter_sources.def"  // its fields and what they mean
};

struct LayerParameter;  // one parameter, packed, counted by reference

// A layer's configuration and parameters. Not thread-safe; used by the thread that prepares calls. Calls in progress
// hold the parameters they were prepared with, so the layer may be changed or destroyed meanwhile.
class MultiHeadAttention {
 public:
  MultiHeadAttention() = default;
  ~MultiHeadAttention();
  MultiHeadAttention(const MultiHeadAttention&) = delete;
  MultiHeadAttention& operator=(const MultiHeadAttention&) = delete;

  // Resolves `config` and makes the start values: kernels Glorot-uniform from the seed, biases 0. After a failure the
  // layer is as before.
  Status Init(const MultiHeadAttentionConfig& config);

  // Takes copies, all or none. A source for a parameter that the layer does not have is kInvalidValue.
  Status SetParameters(const ParameterSources& sources);

  // Writes the very floats that were set; nothing for a parameter that the layer does not have.
  void GetParameter(ParameterKind kind, float* target) const;

  ParameterShape Shape(ParameterKind kind) const;
  const MultiHeadAttentionConfig& config() const { return config_; }  // resolved

 private:
  friend class MultiHeadAttentionForward;
  MultiHeadAttentionConfig config_;
  RotaryArrays rope_arrays_;
  LayerParameter* parameters_[kParameterKinds] = {};
};

// One call. All pointers are borrowed for the length of the call; query, key and value may be the same.
struct MultiHeadAttentionArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/multi_head_attention_args.def"  // its fields and what they mean
};

// A call in progress: Prepare, then run the job. The object outlives the job and does not move.
//
// With a rotary embedding key j stands at position j, query i at i + offset, the offset being the one that causality,
// windows and ALiBi use (causal_offsets, by default kv_length - q_length); the text is as long as the longer of both. Output rows past the end of q_lengths are 0;
// a row that sees no key is the output bias. A convolution sees every token: lengths and masks act on what it makes.
class MultiHeadAttentionForward {
 public:
  MultiHeadAttentionForward() = default;
  ~MultiHeadAttentionForward();
  MultiHeadAttentionForward(const MultiHeadAttentionForward&) = delete;
  MultiHeadAttentionForward& operator=(const MultiHeadAttentionForward&) = delete;

  // Checks, plans and allocates (the projections, B * (L * H + S * G) * (D + Dv) floats); adds the phases to `job`.
  // After a failure nothing is held, and the job must not be run.
  Status Prepare(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Call;
  Call* call_ = nullptr;
};

// Prepare and run at once.
Status Forward(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args, ThreadPool& pool);

}  // namespace headwise
