// Binding layer: attention, forward and backward, and the slices of whatever call is in progress.
#include <emscripten/bind.h>

#include "call.h"
#include "headwise/attention.h"
#include "headwise/attention_backward.h"
#include "headwise/merge.h"

namespace headwise::binding {
namespace {

struct AttentionOperation {
  using Args = AttentionArgs;
  Status Prepare(const Args& args, Job& job) { return forward.Prepare(args, *Pool(), job); }
  AttentionForward forward;
};

struct MergeOperation {
  using Args = MergeArgs;
  Status Prepare(const Args& args, Job& job) { return AddMerge(args, job); }
};

struct AttentionBackwardOperation {
  using Args = AttentionBackwardArgs;
  Status Prepare(const Args& args, Job& job) { return backward.Prepare(args, *Pool(), job); }
  AttentionBackward backward;
};

// True when the call is done; else it is to be run again.
bool RunCall(Address call, double budget_ms) { return At<CallInProgress>(call)->job.Run(*Pool(), budget_ms); }

// At any time, done or not.
void EndCall(Address call) {
  At<CallInProgress>(call)->destroy(At<CallInProgress>(call));
  --calls_in_progress;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are JavaScript's
HEADWISE_AT_ONCE(attention, AttentionOperation)
HEADWISE_AT_ONCE(mergeAttention, MergeOperation)
HEADWISE_AT_ONCE(attentionBackward, AttentionBackwardOperation)
// NOLINTEND(readability-identifier-naming)

EMSCRIPTEN_BINDINGS(headwise_attention) {
  emscripten::function("beginAttention", &Begin<AttentionOperation>);
  emscripten::function("beginMergeAttention", &Begin<MergeOperation>);
  emscripten::function("beginAttentionBackward", &Begin<AttentionBackwardOperation>);
  emscripten::function("runCall", &RunCall);
  emscripten::function("endCall", &EndCall);
}

}  // namespace headwise::binding
