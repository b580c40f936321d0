// Layers: a Transformer's forward pass and training step. The graph is put together in transformer_build.cc.
#include <cmath>
#include <cstring>
#include <new>

#include "headwise/transformer.h"
#include "memory/aligned.h"
#include "nn/graph.h"
#include "nn/transformer_build.h"

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

Status CheckBatch(const TransformerConfig& c, const TransformerBatch& b) {
  if (b.batch < 0) return Status::InvalidShape("batch");
  if (c.kind != TransformerKind::kDecoder) {
    if (Status status = CheckSource(c, b); !status.ok()) return status;
  }
  return c.kind != TransformerKind::kEncoder ? CheckTarget(c, b) : Status::Ok();
}

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
  call_->logits = TransformerBuild(model, batch, weights, graph).Logits();
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
  call.logits = TransformerBuild(model, batch, nullptr, graph).Logits();
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
