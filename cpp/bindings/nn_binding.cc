// Binding layer: linear, embedding and positional encoding.
#include <emscripten/bind.h>

#include "call.h"
#include "headwise/embedding.h"
#include "headwise/linear.h"
#include "headwise/positional_encoding.h"
#include "headwise/rotary.h"

namespace headwise::binding {
namespace {

struct LinearOperation {
  using Args = LinearArgs;
  Status Prepare(const Args& args, Job& job) { return forward.Prepare(args, job); }
  LinearForward forward;
};

struct EmbeddingOperation {
  using Args = EmbeddingArgs;
  Status Prepare(const Args& args, Job& job) { return AddEmbedding(args, job); }
};

struct PositionalEncodingOperation {
  using Args = PositionalEncodingArgs;
  Status Prepare(const Args& args, Job& job) { return AddPositionalEncoding(args, job); }
};

struct RotaryOperation {
  using Args = RotaryArgs;
  Status Prepare(const Args& args, Job& job) { return AddRotary(args, job); }
};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are JavaScript's
HEADWISE_AT_ONCE(linear, LinearOperation)
HEADWISE_AT_ONCE(embedding, EmbeddingOperation)
HEADWISE_AT_ONCE(positionalEncoding, PositionalEncodingOperation)
HEADWISE_AT_ONCE(rotaryEmbedding, RotaryOperation)
// NOLINTEND(readability-identifier-naming)

EMSCRIPTEN_BINDINGS(headwise_nn) {
  emscripten::function("beginLinear", &Begin<LinearOperation>);
  emscripten::function("beginEmbedding", &Begin<EmbeddingOperation>);
  emscripten::function("beginPositionalEncoding", &Begin<PositionalEncodingOperation>);
  emscripten::function("beginRotaryEmbedding", &Begin<RotaryOperation>);
}

}  // namespace headwise::binding
