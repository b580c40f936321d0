// Binding layer: the ceilings, for the benchmark.
#include <emscripten/bind.h>

#include "binding.h"
#include "headwise/probe.h"

namespace headwise::binding {
namespace {

// The floating-point operations that were done; 0 after a failure.
double ProbeMultiplyAddTasks(std::int32_t tasks) {
  double operations = 0.0;
  Report(ProbeMultiplyAdd(tasks, *Pool(), &operations));
  return operations;
}

// `count` floats, a multiple of 64; returns the status' code.
std::int32_t ProbeReadFloats(Address data, double count) {
  return Report(ProbeRead(At<const float>(data), static_cast<std::int64_t>(count), *Pool()));
}

}  // namespace

EMSCRIPTEN_BINDINGS(headwise_probe) {
  emscripten::function("probeMultiplyAdd", &ProbeMultiplyAddTasks);
  emscripten::function("probeRead", &ProbeReadFloats);
}

}  // namespace headwise::binding
