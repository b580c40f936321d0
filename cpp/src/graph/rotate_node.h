// Graph: the graph's rotary embedding. A rotation's transpose is the rotation by the opposite angle.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "headwise/rotary.h"

namespace headwise {

class RotateNode final : public GraphNode {
 public:
  RotateNode(Value* x, const RotaryArgs& options, Value* y);
  Status Forward(Graph& /*graph*/, Job& job) override { return AddRotary(args_, job); }
  Status Backward(Graph& graph, Job& job) override;

 private:
  Value *x_, *y_;
  RotaryArgs args_, backward_;
};

}  // namespace headwise
