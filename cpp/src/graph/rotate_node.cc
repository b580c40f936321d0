// Graph: the graph's rotary embedding.
#include "graph/rotate_node.h"

namespace headwise {

RotateNode::RotateNode(Value* x, const RotaryArgs& options, Value* y) : x_(x), y_(y), args_(options) {
  args_.size = x->width / args_.heads;
  args_.x = x->data;
  args_.y = y->data;
  args_.x_strides = args_.y_strides = {args_.rows * x->width, args_.size, x->width};
}

Status RotateNode::Backward(Graph& graph, Job& job) {
  if (!y_->written) return Status::Ok();
  bool add = false;
  float* d_x = graph.StoreFor(x_, &add);
  if (!graph.status().ok()) return graph.status();
  backward_ = args_;
  backward_.x = y_->gradient;
  backward_.y = d_x;
  backward_.transposed = 1;
  if (Status status = AddRotary(backward_, job); !status.ok()) return status;
  return graph.AddStored(x_, d_x, add, job);
}

}  // namespace headwise
