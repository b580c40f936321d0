// Binding layer: the Transformer: life, parameters, forward pass, training step, decoding.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <algorithm>
#include <new>

#include "call.h"
#include "headwise/transformer.h"
#include "headwise/transformer_decoding.h"
#include "transformer_call.h"

namespace headwise::binding {
namespace {

using emscripten::val;

struct ForwardOperation {
  using Args = TransformerForwardArgs;
  Status Prepare(const Args& args, Job& job) {
    return forward.Prepare(*args.model, args.batch, args.logits, args.weights, *Pool(), job);
  }
  TransformerForward forward;
};

struct StepOperation {
  using Args = TransformerStepArgs;
  Status Prepare(const Args& args, Job& job) {
    TrainingOptions options;
    options.optimizer = {static_cast<OptimizerKind>(args.optimizer),
                         args.momentum,
                         args.beta1,
                         args.beta2,
                         args.epsilon,
                         args.weight_decay};
    options.rate = args.rate;
    options.step = args.step;
    options.smoothing = args.smoothing;
    if (args.max_norm > 0.0F) options.max_norm = args.max_norm;
    options.part = args.part;
    options.parts = args.parts;
    options.counted = args.counted;
    options.decays = args.decays;
    target = args.result;
    if (Status status = step.Prepare(*args.model, args.batch, options, *Pool(), job); !status.ok()) return status;
    return job.AddPhase(1, &Leave, this);
  }
  static void Leave(void* context, std::int64_t /*index*/, int /*thread*/) {
    const auto& self = *static_cast<const StepOperation*>(context);
    const TrainingResult result = self.step.result();
    self.target[0] = static_cast<float>(result.loss);
    self.target[1] = static_cast<float>(result.counted);
    self.target[2] = static_cast<float>(result.correct);
    self.target[3] = static_cast<float>(result.gradient_norm);
    self.target[4] = result.applied ? 1.0F : 0.0F;
    float* name = self.target + kStepNumbers;
    std::fill_n(name, ParameterArena::kMostName, 0.0F);
    for (const char* letter = result.module; *letter != 0; ++letter) *name++ = static_cast<float>(*letter);
  }
  TransformerStep step;
  float* target = nullptr;
};

struct DecodeOperation {
  using Args = TransformerDecodeArgs;
  Status Prepare(const Args& args, Job& job) { return step.Prepare(args, *Pool(), job); }
  TransformerDecodeStep step;
};

// The decoding's handle, or 0 after a failure, which Report has kept.
Address CreateDecoding(Address model, std::int32_t rows, std::int32_t capacity) {
  auto* decoding = new (std::nothrow) TransformerDecoding;
  if (decoding == nullptr) {
    Report(Status::OutOfMemory(sizeof(TransformerDecoding)));
    return 0;
  }
  if (Report(decoding->Init(*At<Transformer>(model), rows, capacity)) != 0) {
    delete decoding;
    return 0;
  }
  return AddressOf(decoding);
}

std::int32_t SelectDecoding(Address decoding, Address rows, std::int32_t count) {
  return Report(At<TransformerDecoding>(decoding)->Select(At<std::int32_t>(rows), count, *Pool()));
}

std::int32_t DecodingLength(Address decoding) { return At<TransformerDecoding>(decoding)->length(); }

void DestroyDecoding(Address decoding) { delete At<TransformerDecoding>(decoding); }

// The model's handle, or 0 after a failure, which Report has kept.
Address CreateTransformer(Address config, std::int32_t moments) {
  auto* model = new (std::nothrow) Transformer;
  if (model == nullptr) {
    Report(Status::OutOfMemory(sizeof(Transformer)));
    return 0;
  }
  if (Report(model->Init(*At<TransformerConfig>(config), moments)) != 0) {
    delete model;
    return 0;
  }
  return AddressOf(model);
}

void DestroyTransformer(Address model) { delete At<Transformer>(model); }

// [{ name, shape, address, moment }, ...] of the parameters, of the buffers that are saved with them, and of the optimizer's
// moments: those of parameter p are first.p and second.p.
val TransformerTensors(Address model) {
  val tensors = val::array();
  const auto add = [&tensors](const char* prefix, const ParameterArena::Parameter& parameter, float* values) {
    val entry = val::object();
    val shape = val::array();
    for (std::int32_t axis = 0; axis < parameter.rank; ++axis) shape.set(axis, parameter.shape[axis]);
    entry.set("name", val::u8string(prefix).call<val>("concat", val::u8string(parameter.name)));
    entry.set("shape", shape);
    entry.set("address", AddressOf(values + parameter.offset));
    entry.set("moment", *prefix != 0);
    tensors.call<void>("push", entry);
  };
  const ParameterArena& parameters = At<Transformer>(model)->parameters();
  const ParameterArena& buffers = At<Transformer>(model)->buffers();
  for (std::int32_t i = 0; i < parameters.size(); ++i) add("", parameters.parameter(i), parameters.values());
  for (std::int32_t i = 0; i < buffers.size(); ++i) {
    // Positions, of rank 2, are computed, not learnt.
    if (buffers.parameter(i).rank == 1) add("", buffers.parameter(i), buffers.values());
  }
  for (std::int32_t n = 0; n < 2; ++n) {
    if (parameters.moment(n) == nullptr) continue;
    for (std::int32_t i = 0; i < parameters.size(); ++i) {
      add(n == 0 ? "first." : "second.", parameters.parameter(i), parameters.moment(n));
    }
  }
  return tensors;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are JavaScript's
HEADWISE_AT_ONCE(transformerForward, ForwardOperation)
HEADWISE_AT_ONCE(transformerStep, StepOperation)
HEADWISE_AT_ONCE(transformerDecode, DecodeOperation)
// NOLINTEND(readability-identifier-naming)

EMSCRIPTEN_BINDINGS(headwise_transformer) {
  emscripten::function("createTransformer", &CreateTransformer);
  emscripten::function("destroyTransformer", &DestroyTransformer);
  emscripten::function("transformerTensors", &TransformerTensors);
  emscripten::function("beginTransformerForward", &Begin<ForwardOperation>);
  emscripten::function("beginTransformerStep", &Begin<StepOperation>);
  emscripten::function("beginTransformerDecode", &Begin<DecodeOperation>);
  emscripten::function("createDecoding", &CreateDecoding);
  emscripten::function("selectDecoding", &SelectDecoding);
  emscripten::function("decodingLength", &DecodingLength);
  emscripten::function("destroyDecoding", &DestroyDecoding);
}

}  // namespace headwise::binding
