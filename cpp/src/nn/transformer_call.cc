// Layers: a Transformer's forward pass and training step as a graph. Start reading at Build::Logits.
#include <cmath>
#include <cstring>
#include <new>

#include "headwise/transformer.h"
#include "memory/aligned.h"
#include "nn/graph.h"
#include "nn/transformer_scope.h"

namespace headwise {

// What one call holds.
struct TransformerCall {
  TransformerCall(ThreadPool& pool, bool training, std::uint64_t seed, std::int64_t at_step)
      : graph(pool, training, seed, at_step) {}
  Graph graph;
  Value* logits = nullptr;
  float* target = nullptr;  // where a forward pass' logits go
  CrossEntropyLoss* loss = nullptr;
  ParameterArena* parameters = nullptr;
  GradientClip clip;
  OptimizerStepArgs step;
  bool skip = false;
};

namespace {

std::uint64_t SeedOf(const TransformerConfig& c) { return (std::uint64_t{c.seed_high} << 32U) | c.seed_low; }

Status CheckBatch(const TransformerConfig& c, const TransformerBatch& b) {
  const bool encoder = c.kind != TransformerKind::kDecoder;
  const bool decoder = c.kind != TransformerKind::kEncoder;
  if (b.batch < 0) return Status::InvalidShape("batch");
  if (encoder && (b.source_length < 1 || b.source_length > c.most_positions)) return Status::InvalidShape("source");
  if (decoder && (b.target_length < 1 || b.target_length > c.most_positions)) return Status::InvalidShape("target");
  if (encoder && c.source_width == 0 && b.source == nullptr) return Status::InvalidValue("source");
  if (encoder && c.source_width > 0 && b.source_vectors == nullptr) return Status::InvalidValue("source_vectors");
  if (decoder && b.target == nullptr) return Status::InvalidValue("target");
  const auto outside = [&b](const std::int32_t* ids, std::int32_t length, std::int32_t vocabulary) {
    for (std::int64_t i = 0; i < std::int64_t{b.batch} * length; ++i) {
      if (ids[i] < 0 || ids[i] >= vocabulary) return true;
    }
    return false;
  };
  if (encoder && c.source_width == 0 && outside(b.source, b.source_length, c.source_vocabulary)) {
    return Status::InvalidValue("source");
  }
  if (decoder && outside(b.target, b.target_length, c.target_vocabulary)) return Status::InvalidValue("target");
  return Status::Ok();
}

class Build {
 public:
  Build(const Transformer& model, const TransformerBatch& batch, float* weights, Graph& graph)
      : model_(model), c_(model.config()), batch_(batch), weights_(weights), graph_(graph) {}

  // Null after a failure, which the graph's status names.
  Value* Logits() {
    Value* memory = nullptr;
    if (c_.kind != TransformerKind::kDecoder) {
      memory = Stack("encoder", c_.encoder_layers, Source(), nullptr, batch_.source_length);
    }
    Value* x = memory;
    if (c_.kind != TransformerKind::kEncoder) {
      Value* tokens =
          Embedded("target_embedding.weight", "target_position.weight", batch_.target, batch_.target_length);
      x = Stack("decoder", c_.decoder_layers, tokens, memory, batch_.target_length);
    }
    const char* generator = c_.tied != 0 ? "target_embedding.weight" : "generator.weight";
    return graph_.Linear(x, Find(generator), Find("generator.bias"));
  }

 private:
  // prefix + name
  struct Path {
    char text[ParameterArena::kMostName] = {};
    Path(const char* prefix, const char* name) {
      const std::size_t length = std::strlen(prefix);
      std::memcpy(text, prefix, length);
      std::memcpy(text + length, name, std::strlen(name));
    }
    Path(const char* stack, std::int32_t layer) : Path(stack, ".layers.") {
      char digits[12] = {};
      char* at = digits + sizeof(digits) - 1;
      do {
        *--at = static_cast<char>('0' + layer % 10);
        layer /= 10;
      } while (layer > 0);
      std::memcpy(text + std::strlen(text), at, std::strlen(at));
    }
  };

  Value* Find(const char* name, std::int32_t first = 0, std::int32_t rows = -1) {
    return graph_.Parameter(model_.parameters(), model_.parameters().Find(name), first, rows);
  }

  Value* Embedded(const char* table, const char* position, const std::int32_t* ids, std::int32_t length) {
    const float scale = c_.scale_embedding != 0 ? std::sqrt(static_cast<float>(c_.embed_dim)) : 1.0F;
    Value* x = graph_.Embed(Find(table), ids, batch_.batch * length, scale, Positions(position), length);
    return graph_.Dropout(x, c_.dropout);
  }

  Value* Positions(const char* learned) {
    if (c_.position == PositionKind::kNone) return nullptr;
    if (c_.position == PositionKind::kLearned) return Find(learned);
    return graph_.Given(model_.positions(), c_.most_positions, c_.embed_dim);
  }

  Value* Source() {
    const std::int32_t length = batch_.source_length;
    if (c_.source_width == 0) {
      return Embedded("source_embedding.weight", "source_position.weight", batch_.source, length);
    }
    Value* patches = graph_.Given(batch_.source_vectors, batch_.batch * length, c_.source_width);
    Value* x = graph_.Linear(patches, Find("source_projection.weight"), Find("source_projection.bias"));
    return graph_.Dropout(graph_.AddPositions(x, Positions("source_position.weight"), length), c_.dropout);
  }

  Value* Norm(Value* x, const char* name) {
    NormParameters p;
    p.kind = static_cast<GraphNorm>(c_.norm);
    p.epsilon = c_.epsilon;
    p.gain = Find(Path(name, ".weight").text);
    if (c_.norm != TransformerNorm::kRms) p.shift = Find(Path(name, ".bias").text);
    if (c_.norm == TransformerNorm::kBatch) {
      const ParameterArena& buffers = model_.buffers();
      p.running_mean = buffers.value(buffers.Find(Path(name, ".running_mean").text));
      p.running_variance = buffers.value(buffers.Find(Path(name, ".running_var").text));
    }
    return graph_.Normalize(x, p);
  }

  // Self-attention when `memory` is null.
  Value* Attention(Value* x, Value* memory, const char* name, std::int32_t length, TransformerAttention which) {
    const std::int32_t e = c_.embed_dim;
    const Path weight(name, ".in_proj_weight");
    const Path bias(name, ".in_proj_bias");
    Value* from = memory != nullptr ? memory : x;
    Value* q = graph_.Linear(x, Find(weight.text, 0, e), Find(bias.text, 0, e));
    Value* k = graph_.Linear(from, Find(weight.text, e, e), Find(bias.text, e, e));
    Value* v = graph_.Linear(from, Find(weight.text, 2 * e, e), Find(bias.text, 2 * e, e));
    AttentionArgs options;
    options.batch = batch_.batch;
    options.heads = c_.heads;
    options.kv_heads = c_.heads;
    options.queries = length;
    options.keys = memory != nullptr ? batch_.source_length : length;
    const std::int32_t head_dim = e / c_.heads;
    options.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    SetScope(batch_, which, &options);
    if (weights_ != nullptr) {
      options.weights = weights_;
      weights_ += std::int64_t{batch_.batch} * c_.heads * length * options.keys;
    }
    Value* y = graph_.Attend(q, k, v, options, c_.dropout);
    return graph_.Linear(y, Find(Path(name, ".out_proj.weight").text), Find(Path(name, ".out_proj.bias").text));
  }

  Value* FeedForward(Value* x, const char* layer) {
    Value* inner = graph_.Linear(x, Find(Path(layer, ".linear1.weight").text), Find(Path(layer, ".linear1.bias").text));
    inner = graph_.Dropout(graph_.Activate(inner, c_.activation), c_.dropout);
    return graph_.Linear(inner, Find(Path(layer, ".linear2.weight").text), Find(Path(layer, ".linear2.bias").text));
  }

  // x + branch(norm(x)), or norm(x + branch(x)).
  template <class Branch>
  Value* Residual(Value* x, const char* norm, Branch&& branch) {
    if (c_.norm_first != 0) return graph_.Add(x, graph_.Dropout(branch(Norm(x, norm)), c_.dropout));
    return Norm(graph_.Add(x, graph_.Dropout(branch(x), c_.dropout)), norm);
  }

  Value* Stack(const char* name, std::int32_t layers, Value* x, Value* memory, std::int32_t length) {
    const bool decoder = name[0] == 'd';
    for (std::int32_t n = 0; n < layers && graph_.status().ok(); ++n) {
      const Path layer(name, n);
      std::int32_t norm = 0;
      static constexpr const char* kNorms[] = {".norm1", ".norm2", ".norm3"};
      x = Residual(x, Path(layer.text, kNorms[norm++]).text, [&](Value* y) {
        return Attention(y, nullptr, Path(layer.text, ".self_attn").text, length,
                         decoder ? TransformerAttention::kTarget : TransformerAttention::kSource);
      });
      if (memory != nullptr) {
        x = Residual(x, Path(layer.text, kNorms[norm++]).text, [&](Value* y) {
          return Attention(y, memory, Path(layer.text, ".multihead_attn").text, length, TransformerAttention::kMemory);
        });
      }
      x = Residual(x, Path(layer.text, kNorms[norm]).text, [&](Value* y) { return FeedForward(y, layer.text); });
    }
    return c_.final_norm != 0 && layers > 0 && graph_.status().ok() ? Norm(x, Path(name, ".norm").text) : x;
  }

  const Transformer& model_;
  const TransformerConfig& c_;
  const TransformerBatch& batch_;
  float* weights_;
  Graph& graph_;
};

Status MakeCall(ThreadPool& pool, const TransformerConfig& config, bool training, std::int64_t step,
                TransformerCall** call) {
  void* place = AllocateAligned(sizeof(TransformerCall));
  if (place == nullptr) return Status::OutOfMemory(sizeof(TransformerCall));
  *call = new (place) TransformerCall(pool, training, SeedOf(config), step);
  return Status::Ok();
}

void DestroyCall(TransformerCall* call) {
  if (call == nullptr) return;
  call->~TransformerCall();
  FreeAligned(call);
}

void CopyLogits(void* context, std::int64_t /*index*/, int /*thread*/) {
  const auto& call = *static_cast<const TransformerCall*>(context);
  std::memcpy(call.target, call.logits->data, static_cast<std::size_t>(call.logits->count()) * sizeof(float));
}

void ClearGradients(void* context, std::int64_t /*index*/, int /*thread*/) {
  static_cast<TransformerCall*>(context)->parameters->ClearGradients();
}

void Judge(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& call = *static_cast<TransformerCall*>(context);
  call.skip = !std::isfinite(call.loss->result().loss) || !std::isfinite(call.clip.norm());
}

}  // namespace

std::int64_t TransformerWeightFloats(const TransformerConfig& c, const TransformerBatch& b) {
  const std::int64_t s = b.source_length;
  const std::int64_t l = b.target_length;
  const std::int64_t heads = std::int64_t{b.batch} * c.heads;
  std::int64_t count = 0;
  if (c.kind != TransformerKind::kDecoder) count += c.encoder_layers * s * s;
  if (c.kind != TransformerKind::kEncoder) count += c.decoder_layers * l * l;
  if (c.kind == TransformerKind::kEncoderDecoder) count += c.decoder_layers * l * s;
  return heads * count;
}

TransformerForward::~TransformerForward() { DestroyCall(call_); }

Status TransformerForward::Prepare(const Transformer& model, const TransformerBatch& batch, float* logits,
                                   float* weights, ThreadPool& pool, Job& job) {
  if (Status status = CheckBatch(model.config(), batch); !status.ok()) return status;
  if (Status status = MakeCall(pool, model.config(), false, 0, &call_); !status.ok()) return status;
  Graph& graph = call_->graph;
  call_->logits = Build(model, batch, weights, graph).Logits();
  call_->target = logits;
  if (Status status = graph.Forward(job); !status.ok()) return status;
  return job.AddPhase(1, &CopyLogits, call_);
}

TransformerStep::~TransformerStep() { DestroyCall(call_); }

Status TransformerStep::Prepare(Transformer& model, const TransformerBatch& batch, const TrainingOptions& options,
                                ThreadPool& pool, Job& job) {
  if (Status status = CheckBatch(model.config(), batch); !status.ok()) return status;
  if (batch.labels == nullptr) return Status::InvalidValue("labels");
  ParameterArena& parameters = model.parameters();
  if (parameters.gradients() == nullptr) return Status::InvalidValue("moments");
  if (Status status = MakeCall(pool, model.config(), true, options.step, &call_); !status.ok()) return status;
  TransformerCall& call = *call_;
  call.parameters = &parameters;
  call.step.config = options.optimizer;
  call.step.rate = options.rate;
  call.step.step = options.step;
  call.step.count = parameters.floats();
  call.step.parameters = parameters.values();
  call.step.gradients = parameters.gradients();
  call.step.first = parameters.moment(0);
  call.step.second = parameters.moment(1);
  call.step.skip = &call.skip;
  if (options.optimizer.kind == OptimizerKind::kSgd && options.optimizer.momentum == 0.0F) call.step.first = nullptr;
  Graph& graph = call.graph;
  call.logits = Build(model, batch, nullptr, graph).Logits();
  call.loss = graph.Loss(call.logits, batch.labels, batch.ignored_label, options.smoothing);
  if (Status status = job.AddPhase(1, &ClearGradients, &call); !status.ok()) return status;
  if (Status status = graph.Forward(job); !status.ok()) return status;
  if (Status status = graph.Backward(job); !status.ok()) return status;
  Status status = call.clip.Prepare(parameters.gradients(), parameters.floats(), options.max_norm, job);
  if (status.ok()) status = job.AddPhase(1, &Judge, &call);
  return status.ok() ? AddOptimizerStep(call.step, job) : status;
}

TrainingResult TransformerStep::result() const {
  const CrossEntropyResult& loss = call_->loss->result();
  return {loss.loss, loss.counted, loss.correct, call_->clip.norm(), !call_->skip};
}

}  // namespace headwise
