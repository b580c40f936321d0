// Binding layer: a call in progress as JavaScript holds it: begun, run in slices, ended. One type-erased handle for every
// operation, so that `run` and `end` exist once.
#pragma once

#include <emscripten/em_macros.h>

#include <new>

#include "binding.h"
#include "headwise/job.h"

namespace headwise::binding {

struct CallInProgress {
  Job job;
  void (*destroy)(CallInProgress*) = nullptr;
};

// `Operation` holds what the job borrows: it has `Args` and `Status Prepare(const Args&, Job&)`. The arguments are copied
// into the call, because JavaScript reuses its argument block at once.
template <class Operation>
struct CallOf : CallInProgress {
  typename Operation::Args args;
  Operation operation;
};

// The call's handle, or 0 after a failure, which Report has kept.
template <class Operation>
Address Begin(Address args) {
  auto* call = new (std::nothrow) CallOf<Operation>;
  if (call == nullptr) {
    Report(Status::OutOfMemory(sizeof(CallOf<Operation>)));
    return 0;
  }
  call->destroy = [](CallInProgress* erased) { delete static_cast<CallOf<Operation>*>(erased); };
  call->args = *At<typename Operation::Args>(args);
  if (Report(call->operation.Prepare(call->args, call->job)) != 0) {
    delete call;
    return 0;
  }
  ++calls_in_progress;
  return AddressOf(static_cast<CallInProgress*>(call));
}

// Begun, run and ended in one crossing; returns the status' code.
template <class Operation>
std::int32_t RunAtOnce(Address args) {
  Operation operation;
  Job job;
  const std::int32_t code = Report(operation.Prepare(*At<typename Operation::Args>(args), job));
  if (code == 0) job.Run(*Pool());
  return code;
}

}  // namespace headwise::binding

// Exports RunAtOnce of an operation as `_name`: embind's way into a function takes a tenth of a tiny call's time. In
// headwise::binding.
#define HEADWISE_AT_ONCE(name, Operation) \
  extern "C" EMSCRIPTEN_KEEPALIVE std::int32_t name(Address args) { return RunAtOnce<Operation>(args); }
