// Public: the Transformer (Vaswani et al., 2017) as encoder-decoder, decoder or encoder: forward, and a training step by the
// core's own gradients. Float32, tensors row-major. Parameters bear the names and shapes of torch.nn.Transformer's;
// in_proj_weight has fewer rows when there are fewer key heads than query heads.
//
// Start reading at TransformerForward::Prepare; the Transformer object holds the parameters only.
#pragma once

#include <cstdint>
#include <limits>

#include "headwise/activation.h"
#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/optimizer.h"
#include "headwise/parameter_arena.h"
#include "headwise/rotary.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

enum class TransformerKind : std::int32_t {
  kEncoderDecoder = 0,  // source and target tokens -> the next target token
  kDecoder = 1,         // target tokens -> the next one; no cross-attention
  kEncoder = 2,         // source tokens or patches -> a class for each position
};
enum class TransformerNorm : std::int32_t { kLayer = 0, kRms = 1, kBatch = 2 };
enum class PositionKind : std::int32_t {
  kSinusoidal = 0,
  kLearned = 1,
  kNone = 2,
  kRotary = 3,  // queries and keys of self-attention are turned; cross-attention has no positions
};

// Fixed-width fields only.
struct TransformerConfig {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/transformer_config.def"  // its fields and what they mean
};

class Transformer {
 public:
  Transformer() = default;
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // Start values: matrices Glorot-uniform, each projection of a packed one by its own size; embeddings normal-like with the
  // variance 1/E (uniform); biases 0, gains 1. `moments`: negative without training, else as ParameterArena::Allocate.
  // kInvalidValue or kInvalidShape names the field.
  Status Init(const TransformerConfig& config, std::int32_t moments);

  const TransformerConfig& config() const { return config_; }
  ParameterArena& parameters() { return parameters_; }
  const ParameterArena& parameters() const { return parameters_; }
  // Running moments of batch norms, which no optimizer touches. Where the model can be trained their second array is that of a
  // step in progress.
  const ParameterArena& buffers() const { return buffers_; }
  // Sinusoidal encodings [most_positions, E], or null.
  const float* positions() const { return buffers_.Find("positions") < 0 ? nullptr : buffers_.values(); }

 private:
  Status AddParameters();
  Status AddStack(const char* name, std::int32_t layers, bool cross);
  Status AddAttention(const char* prefix);
  Status AddNorm(const char* name);
  Status AddMatrix(const char* name, std::int32_t rows, std::int32_t columns);
  Status AddVector(const char* name, std::int32_t size);
  void Start();

  friend class TransformerStep;

  TransformerConfig config_;
  RotaryArrays rope_arrays_;
  ParameterArena parameters_;
  ParameterArena buffers_;
  std::int32_t parts_done_ = 0;  // of a step that is taken in parts
};

// What the rows of one kind of attention may see, in every layer and beside padding and causality. Null: nothing more is
// hidden or added. Both are broadcast to [B,H,rows,keys], as AttentionArgs has them.
struct TransformerScope {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/transformer_scope.def"  // its fields and what they mean
};

// All pointers are borrowed for the length of the call.
struct TransformerBatch {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/transformer_batch.def"  // its fields and what they mean
};

// Floats of the weights of attention that a forward pass can leave: for every encoder layer [B,H,S,S], then for every decoder
// layer [B,H,L,L] and, with an encoder, [B,H,L,S].
std::int64_t TransformerWeightFloats(const TransformerConfig& config, const TransformerBatch& batch);

struct TransformerCall;

class TransformerForward {
 public:
  TransformerForward() = default;
  ~TransformerForward();
  TransformerForward(const TransformerForward&) = delete;
  TransformerForward& operator=(const TransformerForward&) = delete;

  // Checks tokens and lengths, plans, allocates the activations, adds the phases. `logits` is [B,L,target_vocabulary], with
  // kEncoder [B,S,...]; `weights` null: not wanted.
  Status Prepare(const Transformer& model, const TransformerBatch& batch, float* logits, float* weights,
                 ThreadPool& pool, Job& job);

 private:
  TransformerCall* call_ = nullptr;
};

// A step over a batch whose activations do not fit is taken in parts, one TransformerStep after the other: each brings some
// of the batch's sequences, the last one changes the parameters. It equals the step over the whole batch, except that
// batch norm sees a part at a time, and dropout drops other elements.
struct TrainingOptions {
  OptimizerConfig optimizer;
  float rate = 1e-3F;
  std::int64_t step = 1;  // t, from 1; dropout's too
  float smoothing = 0.0F;
  float max_norm = std::numeric_limits<float>::infinity();
  std::int32_t part = 0;  // 0 ... parts - 1, in order
  std::int32_t parts = 1;
  std::int32_t counted = 0;  // labels that count in all parts together; 0: those of this one
  const std::uint8_t* decays =
      nullptr;  // of each parameter, in the arena's order: 0 leaves it out of weight decay. Null: all
};

struct TrainingResult {
  double loss = 0.0;  // of a part: its share of the whole
  std::int32_t counted = 0;
  std::int32_t correct = 0;
  double gradient_norm = 0.0;  // before clipping; of all parts so far
  bool applied = false;        // false: loss or gradients are not finite, and the model is as before
  // Then: the first module whose output is not finite, or, going backward, its gradients: a parameter's name without its last
  // word, such as "decoder.layers.1.self_attn"; or "loss". Else empty.
  char module[ParameterArena::kMostName] = {};
};

class TransformerStep {
 public:
  TransformerStep() = default;
  ~TransformerStep();
  TransformerStep(const TransformerStep&) = delete;
  TransformerStep& operator=(const TransformerStep&) = delete;

  // Forward, backward, clipping and the optimizer's step. The same bits for any number of threads. kInvalidValue "part": the
  // one before it has not been taken.
  Status Prepare(Transformer& model, const TransformerBatch& batch, const TrainingOptions& options, ThreadPool& pool,
                 Job& job);
  // Once the job is done.
  TrainingResult result() const;

 private:
  TransformerCall* call_ = nullptr;
};

}  // namespace headwise
