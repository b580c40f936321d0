// Graph: the graph's operations for reading a target token by token. They have no backward pass.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "headwise/kv_cache.h"

namespace headwise {

class CachedAttendNode final : public GraphNode {
 public:
  CachedAttendNode(Value* q, Value* k, Value* v, const AttentionArgs& options, KeyValueCache& cache, Value* y);
  Status Forward(Graph& graph, Job& job) override { return step_.Prepare(args_, graph.pool(), job); }
  Status Backward(Graph& /*graph*/, Job& /*job*/) override { return Status::InvalidValue("training"); }

 private:
  KeyValueStepArgs args_;
  KeyValueStep step_;
};

class LastRowsNode final : public GraphNode {
 public:
  LastRowsNode(Value* x, std::int32_t length, Value* y) : x_(x), y_(y), length_(length) {}
  Status Forward(Graph& /*graph*/, Job& job) override { return job.AddPhase(1, &Copy, this); }
  Status Backward(Graph& /*graph*/, Job& /*job*/) override { return Status::InvalidValue("training"); }

 private:
  static void Copy(void* context, std::int64_t index, int thread);
  Value *x_, *y_;
  std::int32_t length_;
};

}  // namespace headwise
