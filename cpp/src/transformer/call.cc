// Transformer: a Transformer's forward pass and training step. The graph is put together in build.cc.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "graph/graph.h"
#include "headwise/transformer.h"
#include "memory/aligned.h"
#include "transformer/build.h"

namespace headwise {

namespace {

// Nodes of one part's graph, and parts.
constexpr std::uint32_t kPartBits = 16;
constexpr std::int32_t kMostParts = 1 << 15;

}  // namespace

// What one call holds.
struct TransformerCall {
  TransformerCall(ThreadPool& pool, bool training, std::uint64_t seed, std::int64_t at_step, std::int32_t at_part)
      : graph(pool, training, seed, at_step, static_cast<std::uint32_t>(at_part) << kPartBits) {}
  Graph graph;
  Value* logits = nullptr;
  float* target = nullptr;  // where a forward pass' logits go
  CrossEntropyLoss* loss = nullptr;
  ParameterArena* parameters = nullptr;
  ParameterArena* buffers = nullptr;
  std::int32_t* parts_done = nullptr;
  std::int32_t part = 0;
  bool last = true;
  GradientClip clip;
  OptimizerStepArgs step;              // of the whole arena
  OptimizerStepArgs* steps = nullptr;  // of its stretches, where some do not decay
  bool skip = false;
  const char* module = nullptr;
};

namespace {

Status CheckBatch(const TransformerConfig& c, const TransformerBatch& b) {
  if (b.batch < 0) return Status::InvalidShape("batch");
  if (c.kind != TransformerKind::kDecoder) {
    if (Status status = CheckSource(c, b); !status.ok()) return status;
  }
  return c.kind != TransformerKind::kEncoder ? CheckTarget(c, b) : Status::Ok();
}

Status MakeCall(ThreadPool& pool, const TransformerConfig& config, bool training, std::int64_t step, std::int32_t part,
                TransformerCall** call) {
  void* place = AllocateAligned(sizeof(TransformerCall));
  if (place == nullptr) return Status::OutOfMemory(sizeof(TransformerCall));
  *call = new (place) TransformerCall(pool, training, SeedOf(config), step, part);
  return Status::Ok();
}

void DestroyCall(TransformerCall* call) {
  if (call == nullptr) return;
  FreeAligned(call->steps);
  call->~TransformerCall();
  FreeAligned(call);
}

void CopyLogits(void* context, std::int64_t /*index*/, int /*thread*/) {
  const auto& call = *static_cast<const TransformerCall*>(context);
  std::memcpy(call.target, call.logits->data, static_cast<std::size_t>(call.logits->count()) * sizeof(float));
}

// A step for each stretch of parameters that all decay, or of which none does.
Status AddOptimizerSteps(TransformerCall& call, const std::uint8_t* decays, Job& job) {
  if (decays == nullptr) return AddOptimizerStep(call.step, job);
  const ParameterArena& arena = *call.parameters;
  const std::uint64_t bytes = sizeof(OptimizerStepArgs) * static_cast<std::uint64_t>(arena.size());
  call.steps = static_cast<OptimizerStepArgs*>(AllocateAligned(bytes));
  if (call.steps == nullptr) return Status::OutOfMemory(bytes);
  OptimizerStepArgs* step = call.steps;
  for (std::int32_t first = 0; first < arena.size(); ++step) {
    std::int32_t end = first + 1;
    while (end < arena.size() && (decays[end] != 0) == (decays[first] != 0)) ++end;
    const std::int64_t from = arena.parameter(first).offset;
    new (step) OptimizerStepArgs(call.step);
    step->count = (end < arena.size() ? arena.parameter(end).offset : arena.floats()) - from;
    step->parameters += from;
    step->gradients += from;
    if (step->first != nullptr) step->first += from;
    if (step->second != nullptr) step->second += from;
    if (decays[first] == 0) step->config.weight_decay = 0.0F;
    if (Status status = AddOptimizerStep(*step, job); !status.ok()) return status;
    first = end;
  }
  return Status::Ok();
}

void Start(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& call = *static_cast<TransformerCall*>(context);
  call.parameters->ClearGradients();
  const ParameterArena& buffers = *call.buffers;
  if (buffers.gradients() != nullptr) std::copy_n(buffers.values(), buffers.floats(), buffers.gradients());
}

void Judge(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& call = *static_cast<TransformerCall*>(context);
  call.skip = !std::isfinite(call.loss->result().loss) || !std::isfinite(call.clip.norm());
  if (call.skip) call.module = call.graph.NotFinite();
  if (call.skip && call.module == nullptr) call.module = "loss";
}

void Finish(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& call = *static_cast<TransformerCall*>(context);
  if (call.skip) return;
  *call.parts_done = call.last ? 0 : call.part + 1;
  const ParameterArena& buffers = *call.buffers;
  if (call.last && buffers.gradients() != nullptr) {
    std::copy_n(buffers.gradients(), buffers.floats(), buffers.values());
  }
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
  if (Status status = MakeCall(pool, model.config(), false, 0, 0, &call_); !status.ok()) return status;
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
  const std::int32_t part = options.part;
  if (part < 0 || part >= options.parts || options.parts > kMostParts) return Status::InvalidValue("part");
  if (part > 0 && model.parts_done_ != part) return Status::InvalidValue("part");
  model.parts_done_ = 0;  // unless this one is taken to its end
  if (Status status = MakeCall(pool, model.config(), true, options.step, options.part, &call_); !status.ok())
    return status;
  TransformerCall& call = *call_;
  call.parameters = &parameters;
  call.buffers = &model.buffers_;
  call.parts_done = &model.parts_done_;
  call.part = part;
  call.last = part + 1 == options.parts;
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
  graph.Enter("loss");
  call.loss = graph.Loss(call.logits, batch.labels, batch.ignored_label, options.smoothing, options.counted);
  if (Status status = job.AddPhase(part == 0 ? 1 : 0, &Start, &call); !status.ok()) return status;
  if (Status status = graph.Forward(job); !status.ok()) return status;
  if (Status status = graph.Backward(job); !status.ok()) return status;
  // Parts are judged one by one: only the graph that made what is not finite can tell where.
  const float max_norm = call.last ? options.max_norm : std::numeric_limits<float>::infinity();
  Status status = call.clip.Prepare(parameters.gradients(), parameters.floats(), max_norm, job);
  if (status.ok()) status = job.AddPhase(1, &Judge, &call);
  if (status.ok() && call.last) status = AddOptimizerSteps(call, options.decays, job);
  return status.ok() ? job.AddPhase(1, &Finish, &call) : status;
}

TrainingResult TransformerStep::result() const {
  const CrossEntropyResult& loss = call_->loss->result();
  TrainingResult result{loss.loss, loss.counted, loss.correct, call_->clip.norm(), !call_->skip};
  if (call_->module != nullptr) std::strncpy(result.module, call_->module, sizeof(result.module) - 1);
  return result;
}

}  // namespace headwise
