// Binding layer: the multi-head attention layer: life, parameters, forward pass.
#include <emscripten/bind.h>

#include <new>

#include "call.h"
#include "headwise/multi_head_attention.h"
#include "layer_call.h"

namespace headwise::binding {
namespace {

struct LayerOperation {
  using Args = LayerForwardArgs;
  Status Prepare(const Args& args, Job& job) { return forward.Prepare(*args.layer, args.call, *Pool(), job); }
  MultiHeadAttentionForward forward;
};

// The layer's handle, or 0 after a failure, which Report has kept.
Address CreateLayer(Address config) {
  auto* layer = new (std::nothrow) MultiHeadAttention;
  if (layer == nullptr) {
    Report(Status::OutOfMemory(sizeof(MultiHeadAttention)));
    return 0;
  }
  if (Report(layer->Init(*At<MultiHeadAttentionConfig>(config))) != 0) {
    delete layer;
    return 0;
  }
  return AddressOf(layer);
}

void DestroyLayer(Address layer) { delete At<MultiHeadAttention>(layer); }

std::int32_t SetParameters(Address layer, Address sources) {
  return Report(At<MultiHeadAttention>(layer)->SetParameters(*At<ParameterSources>(sources)));
}

void GetParameter(Address layer, std::int32_t kind, Address target) {
  At<MultiHeadAttention>(layer)->GetParameter(static_cast<ParameterKind>(kind), At<float>(target));
}

// Writes the rank and four axes, five integers.
void ParameterShapeOf(Address layer, std::int32_t kind, Address target) {
  const ParameterShape shape = At<MultiHeadAttention>(layer)->Shape(static_cast<ParameterKind>(kind));
  auto* out = At<std::int32_t>(target);
  *out++ = shape.rank;
  for (const std::int32_t axis : shape.axes) *out++ = axis;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are JavaScript's
HEADWISE_AT_ONCE(layerForward, LayerOperation)
// NOLINTEND(readability-identifier-naming)

EMSCRIPTEN_BINDINGS(headwise_layer) {
  emscripten::function("beginLayerForward", &Begin<LayerOperation>);
  emscripten::function("createLayer", &CreateLayer);
  emscripten::function("destroyLayer", &DestroyLayer);
  emscripten::function("setParameters", &SetParameters);
  emscripten::function("getParameter", &GetParameter);
  emscripten::function("parameterShape", &ParameterShapeOf);
}

}  // namespace headwise::binding
