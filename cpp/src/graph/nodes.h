// Graph: the graph's operations, each a forward and a backward pass put together from the public layers.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "headwise/attention_backward.h"
#include "headwise/batch_norm.h"
#include "headwise/column_sums.h"
#include "headwise/product.h"

namespace headwise {

class LinearNode final : public GraphNode {
 public:
  LinearNode(Value* x, Value* weight, Value* bias, Value* y) : x_(x), weight_(weight), bias_(bias), y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  Value *x_, *weight_, *bias_, *y_;
  Product forward_, d_x_, d_weight_;
  ColumnSumsArgs d_bias_;
};

class NormNode final : public GraphNode {
 public:
  NormNode(Value* x, const NormParameters& parameters, Value* y, float* mean, float* inverse)
      : x_(x), p_(parameters), y_(y), mean_(mean), inverse_(inverse) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  Value* x_;
  NormParameters p_;
  Value* y_;
  float *mean_, *inverse_;
  NormArgs row_args_;
  NormBackwardArgs row_backward_;
  BatchNormArgs batch_args_;
  BatchNormBackwardArgs batch_backward_;
};

class ActivationNode final : public GraphNode {
 public:
  ActivationNode(Value* x, ActivationKind kind, Value* y) : x_(x), args_{kind, x->count(), x->data, y->data}, y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  Value* x_;
  ActivationArgs args_;
  ActivationBackwardArgs backward_;
  Value* y_;
};

class AddNode final : public GraphNode {
 public:
  AddNode(Value* a, Value* b, Value* y) : a_(a), b_(b), y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  static void Sum(void* context, std::int64_t index, int thread);
  static void Pass(void* context, std::int64_t index, int thread);
  Value *a_, *b_, *y_;
  bool add_a_ = false;
  bool add_b_ = false;
};

class DropoutNode final : public GraphNode {
 public:
  DropoutNode(Value* x, float rate, std::uint32_t stream, Value* y) : x_(x), rate_(rate), stream_(stream), y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  static void Drop(void* context, std::int64_t index, int thread);
  static void DropGradient(void* context, std::int64_t index, int thread);
  void Apply(const float* from, float* to, std::int64_t index, bool add) const;
  void Seed(const Graph& graph);
  Value* x_;
  float rate_;
  std::uint32_t stream_;
  Value* y_;
  std::uint32_t key_[2] = {};
  std::uint32_t step_ = 0;
  bool add_ = false;
};

class EmbedNode final : public GraphNode {
 public:
  EmbedNode(Value* table, const std::int32_t* ids, float scale, Value* positions, std::int32_t length, Value* y)
      : table_(table), ids_(ids), scale_(scale), positions_(positions), length_(length), y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  static void LookUp(void* context, std::int64_t index, int thread);
  static void AddTable(void* context, std::int64_t index, int thread);
  static void AddPositions(void* context, std::int64_t index, int thread);
  Value* table_;
  const std::int32_t* ids_;
  float scale_;
  Value* positions_;
  std::int32_t length_;
  Value* y_;
};

class PositionNode final : public GraphNode {
 public:
  PositionNode(Value* x, Value* positions, std::int32_t length, Value* y)
      : x_(x), positions_(positions), length_(length), y_(y) {}
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  static void Sum(void* context, std::int64_t index, int thread);
  static void Pass(void* context, std::int64_t index, int thread);
  Value *x_, *positions_;
  std::int32_t length_;
  Value* y_;
  bool add_ = false;
};

class AttendNode final : public GraphNode {
 public:
  AttendNode(const Graph& graph, Value* q, Value* k, Value* v, const AttentionArgs& options, float dropout,
             std::uint32_t stream, float* log_sum_exp, Value* y);
  Status Forward(Graph& graph, Job& job) override;
  Status Backward(Graph& graph, Job& job) override;

 private:
  Value *q_, *k_, *v_, *y_;
  AttentionArgs args_;
  AttentionForward forward_;
  AttentionBackward backward_;
};

class LossNode final : public GraphNode {
 public:
  explicit LossNode(const CrossEntropyArgs& args) : args_(args) {}
  Status Forward(Graph& /*graph*/, Job& job) override { return loss_.Prepare(args_, job); }
  // The forward pass has left the gradient.
  Status Backward(Graph& /*graph*/, Job& /*job*/) override { return Status::Ok(); }
  CrossEntropyLoss& loss() { return loss_; }

 private:
  CrossEntropyArgs args_;
  CrossEntropyLoss loss_;
};

}  // namespace headwise
