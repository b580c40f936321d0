// Graph: the graph's operations.
#include "graph/nodes.h"

#include <algorithm>

#include "headwise/random.h"
#include "nn/column_blocks.h"
#include "nn/element_blocks.h"
#include "nn/row_blocks.h"

namespace headwise {
namespace {

constexpr int kWords = 4;
constexpr double kTwoTo32 = 4294967296.0;

ProductArgs ProductOf(std::int32_t m, std::int32_t n, std::int32_t k, MatrixView a, MatrixView b, float* c, bool add) {
  ProductArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a;
  args.b = b;
  args.c = c;
  args.c_row_stride = n;
  args.accumulate = add;
  return args;
}

// Adds a value's gradient to that of the positions its rows stand at.
void SumByPosition(const Value& y, std::int32_t length, ColumnRange columns, float* d_positions) {
  const std::int64_t width = y.width;
  for (std::int64_t row = 0; row < y.rows; ++row) {
    float* to = d_positions + row % length * width;
    const float* from = y.gradient + row * width;
    for (std::int32_t c = columns.begin; c < columns.end; ++c) to[c] += from[c];
  }
}

}  // namespace

Status LinearNode::Forward(Graph& /*graph*/, Job& job) {
  ProductArgs args = ProductOf(x_->rows, weight_->rows, x_->width, {x_->data, x_->width, 1},
                               {weight_->data, 1, weight_->width}, y_->data, false);
  args.bias = bias_ == nullptr ? nullptr : bias_->data;
  return forward_.Prepare(args, job);
}

Status LinearNode::Backward(Graph& /*graph*/, Job& job) {
  if (!y_->written) return Status::Ok();
  const std::int32_t in = x_->width;
  const std::int32_t out = weight_->rows;
  const MatrixView d_y = {y_->gradient, out, 1};
  bool add = false;
  if (float* d_x = Graph::Into(x_, &add)) {
    const ProductArgs args = ProductOf(x_->rows, in, out, d_y, {weight_->data, in, 1}, d_x, add);
    if (Status status = d_x_.Prepare(args, job); !status.ok()) return status;
  }
  if (float* d_weight = Graph::Into(weight_, &add)) {
    const ProductArgs args = ProductOf(out, in, x_->rows, {y_->gradient, 1, out}, {x_->data, in, 1}, d_weight, add);
    if (Status status = d_weight_.Prepare(args, job); !status.ok()) return status;
  }
  float* d_bias = Graph::Into(bias_, &add);
  if (d_bias == nullptr) return Status::Ok();
  d_bias_ = {y_->rows, out, y_->gradient, d_bias, add};
  return AddColumnSums(d_bias_, job);
}

Status NormNode::Forward(Graph& graph, Job& job) {
  if (p_.kind == GraphNorm::kBatch) {
    batch_args_ = {x_->rows,       x_->width,       graph.training(),    p_.epsilon, 0.1F,  x_->data, p_.gain->data,
                   p_.shift->data, p_.running_mean, p_.running_variance, y_->data,   mean_, inverse_};
    return AddBatchNorm(batch_args_, job);
  }
  const bool layer = p_.kind == GraphNorm::kLayer;
  row_args_ = {layer ? NormKind::kLayer : NormKind::kRms,
               x_->rows,
               x_->width,
               p_.epsilon,
               x_->data,
               p_.gain->data,
               p_.shift == nullptr ? nullptr : p_.shift->data,
               y_->data,
               layer ? mean_ : nullptr,
               inverse_};
  return AddNorm(row_args_, job);
}

Status NormNode::Backward(Graph& graph, Job& job) {
  if (!y_->written) return Status::Ok();
  bool add = false;
  bool add_x = false;
  float* d_gain = Graph::Into(p_.gain, &add);
  float* d_shift = Graph::Into(p_.shift, &add);
  float* d_x = graph.StoreFor(x_, &add_x);
  if (!graph.status().ok()) return graph.status();
  Status status;
  if (p_.kind == GraphNorm::kBatch) {
    batch_backward_ = {x_->rows, x_->width,    true, x_->data, p_.gain->data, mean_,
                       inverse_, y_->gradient, d_x,  d_gain,   d_shift,       true};
    status = AddBatchNormBackward(batch_backward_, job);
  } else {
    const bool layer = p_.kind == GraphNorm::kLayer;
    row_backward_ = {layer ? NormKind::kLayer : NormKind::kRms,
                     x_->rows,
                     x_->width,
                     x_->data,
                     p_.gain->data,
                     layer ? mean_ : nullptr,
                     inverse_,
                     y_->gradient,
                     d_x,
                     d_gain,
                     d_shift,
                     true};
    status = AddNormBackward(row_backward_, job);
  }
  return status.ok() ? graph.AddStored(x_, d_x, add_x, job) : status;
}

Status ActivationNode::Forward(Graph& /*graph*/, Job& job) { return AddActivation(args_, job); }

Status ActivationNode::Backward(Graph& graph, Job& job) {
  if (!y_->written) return Status::Ok();
  bool add = false;
  float* d_x = graph.StoreFor(x_, &add);
  if (d_x == nullptr) return graph.status();
  backward_ = {args_.kind, args_.count, args_.x, y_->gradient, d_x};
  if (Status status = AddActivationBackward(backward_, job); !status.ok()) return status;
  return graph.AddStored(x_, d_x, add, job);
}

Status AddNode::Forward(Graph& /*graph*/, Job& job) { return job.AddPhase(ElementBlocks(y_->count()), &Sum, this); }

Status AddNode::Backward(Graph& /*graph*/, Job& job) {
  if (!y_->written) return Status::Ok();
  Graph::Into(a_, &add_a_);
  Graph::Into(b_, &add_b_);
  return job.AddPhase(ElementBlocks(y_->count()), &Pass, this);
}

void AddNode::Sum(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const AddNode*>(context);
  const ElementRange range = ElementsOfBlock(index, node.y_->count());
  for (std::int64_t i = range.begin; i < range.end; ++i) node.y_->data[i] = node.a_->data[i] + node.b_->data[i];
}

void AddNode::Pass(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const AddNode*>(context);
  const ElementRange range = ElementsOfBlock(index, node.y_->count());
  const float* from = node.y_->gradient;
  const auto pass = [&](float* to, bool add) {
    if (to == nullptr) return;
    for (std::int64_t i = range.begin; i < range.end; ++i) to[i] = add ? to[i] + from[i] : from[i];
  };
  pass(node.a_->gradient, node.add_a_);
  pass(node.b_->gradient, node.add_b_);
}

void DropoutNode::Seed(const Graph& graph) {
  key_[0] = static_cast<std::uint32_t>(graph.seed());
  key_[1] = static_cast<std::uint32_t>(graph.seed() >> 32U);
  step_ = static_cast<std::uint32_t>(graph.step());
}

Status DropoutNode::Forward(Graph& graph, Job& job) {
  Seed(graph);
  return job.AddPhase(ElementBlocks(x_->count()), &Drop, this);
}

Status DropoutNode::Backward(Graph& /*graph*/, Job& job) {
  if (!y_->written || Graph::Into(x_, &add_) == nullptr) return Status::Ok();
  return job.AddPhase(ElementBlocks(x_->count()), &DropGradient, this);
}

void DropoutNode::Drop(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const DropoutNode*>(context);
  node.Apply(node.x_->data, node.y_->data, index, false);
}

void DropoutNode::DropGradient(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const DropoutNode*>(context);
  node.Apply(node.y_->gradient, node.x_->gradient, index, node.add_);
}

void DropoutNode::Apply(const float* from, float* to, std::int64_t index, bool add) const {
  const ElementRange range = ElementsOfBlock(index, x_->count());  // begins at a multiple of kWords
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(rate_) * kTwoTo32);
  const float kept = 1.0F / (1.0F - rate_);
  std::uint32_t words[kWords] = {};
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    if (i % kWords == 0) {
      const auto block = static_cast<std::uint64_t>(i / kWords);
      const std::uint32_t counter[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U),
                                        stream_, step_};
      Philox(counter, key_, words);
    }
    const float value = words[i % kWords] < threshold ? 0.0F : from[i] * kept;
    to[i] = add ? to[i] + value : value;
  }
}

Status EmbedNode::Forward(Graph& /*graph*/, Job& job) {
  return job.AddPhase(RowBlocks(y_->rows, y_->width), &LookUp, this);
}

Status EmbedNode::Backward(Graph& /*graph*/, Job& job) {
  if (!y_->written) return Status::Ok();
  if (table_->gradient != nullptr) {
    if (Status status = job.AddPhase(ColumnBlocks(y_->width), &AddTable, this); !status.ok()) return status;
  }
  const bool learned = positions_ != nullptr && positions_->gradient != nullptr;
  return job.AddPhase(learned ? ColumnBlocks(y_->width) : 0, &AddPositions, this);
}

void EmbedNode::LookUp(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const EmbedNode*>(context);
  const RowRange rows = RowsOfBlock(index, node.y_->rows, node.y_->width);
  const std::int64_t width = node.y_->width;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = node.table_->data + node.ids_[row] * width;
    const float* position = node.positions_ == nullptr ? nullptr : node.positions_->data + row % node.length_ * width;
    float* to = node.y_->data + row * width;
    for (std::int64_t c = 0; c < width; ++c) {
      to[c] = from[c] * node.scale_ + (position == nullptr ? 0.0F : position[c]);
    }
  }
}

void EmbedNode::AddTable(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const EmbedNode*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, node.y_->width);
  const std::int64_t width = node.y_->width;
  for (std::int64_t row = 0; row < node.y_->rows; ++row) {
    float* to = node.table_->gradient + node.ids_[row] * width;
    const float* from = node.y_->gradient + row * width;
    for (std::int32_t c = columns.begin; c < columns.end; ++c) to[c] += from[c] * node.scale_;
  }
}

void EmbedNode::AddPositions(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const EmbedNode*>(context);
  SumByPosition(*node.y_, node.length_, ColumnsOfBlock(index, node.y_->width), node.positions_->gradient);
}

Status PositionNode::Forward(Graph& /*graph*/, Job& job) {
  return job.AddPhase(RowBlocks(y_->rows, y_->width), &Sum, this);
}

Status PositionNode::Backward(Graph& /*graph*/, Job& job) {
  if (!y_->written) return Status::Ok();
  Graph::Into(x_, &add_);
  return job.AddPhase(ColumnBlocks(y_->width), &Pass, this);
}

void PositionNode::Sum(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const PositionNode*>(context);
  const RowRange rows = RowsOfBlock(index, node.y_->rows, node.y_->width);
  const std::int64_t width = node.y_->width;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* position = node.positions_->data + row % node.length_ * width;
    for (std::int64_t c = 0; c < width; ++c) {
      node.y_->data[row * width + c] = node.x_->data[row * width + c] + position[c];
    }
  }
}

void PositionNode::Pass(void* context, std::int64_t index, int /*thread*/) {
  const auto& node = *static_cast<const PositionNode*>(context);
  const ColumnRange columns = ColumnsOfBlock(index, node.y_->width);
  const std::int64_t width = node.y_->width;
  if (node.positions_->gradient != nullptr) {
    SumByPosition(*node.y_, node.length_, columns, node.positions_->gradient);
  }
  if (node.x_->gradient == nullptr) return;
  for (std::int64_t row = 0; row < node.y_->rows; ++row) {
    float* to = node.x_->gradient + row * width;
    const float* from = node.y_->gradient + row * width;
    for (std::int32_t c = columns.begin; c < columns.end; ++c) to[c] = node.add_ ? to[c] + from[c] : from[c];
  }
}

AttendNode::AttendNode(const Graph& graph, Value* q, Value* k, Value* v, const AttentionArgs& options, float dropout,
                       std::uint32_t stream, float* log_sum_exp, Value* y)
    : q_(q), k_(k), v_(v), y_(y), args_(options) {
  args_.head_dim = q->width / args_.heads;
  args_.value_dim = v->width / args_.kv_heads;
  const auto strides = [](std::int32_t rows, std::int32_t width, std::int32_t size) {
    return Strides{rows * width, size, width};
  };
  args_.q = q->data;
  args_.k = k->data;
  args_.v = v->data;
  args_.out = y->data;
  args_.q_strides = strides(args_.queries, q->width, args_.head_dim);
  args_.k_strides = strides(args_.keys, k->width, args_.head_dim);
  args_.v_strides = strides(args_.keys, v->width, args_.value_dim);
  if (k->rows < std::int64_t{args_.batch} * args_.keys)
    args_.k_strides.batch = args_.v_strides.batch = 0;  // the batch shares them
  args_.out_strides = strides(args_.queries, y->width, args_.value_dim);
  args_.log_sum_exp = log_sum_exp;
  if (graph.training() && dropout > 0.0F) {
    args_.dropout_rate = dropout;
    // Told apart from the elements' dropout by the words' places, and from other nodes and steps by these.
    args_.dropout_seed_low = static_cast<std::uint32_t>(graph.seed()) ^ (stream * 0x9E3779B9U);
    args_.dropout_seed_high =
        static_cast<std::uint32_t>(graph.seed() >> 32U) + static_cast<std::uint32_t>(graph.step()) * 0x85EBCA6BU;
  }
}

Status AttendNode::Forward(Graph& graph, Job& job) { return forward_.Prepare(args_, graph.pool(), job); }

Status AttendNode::Backward(Graph& graph, Job& job) {
  if (!y_->written) return Status::Ok();
  bool add_q = false;
  bool add_k = false;
  bool add_v = false;
  AttentionBackwardArgs args;
  args.attention = args_;
  args.attention.weights = nullptr;
  args.attention.weight_heads = nullptr;
  args.d_out = y_->gradient;
  args.dq = graph.StoreFor(q_, &add_q);
  args.dk = graph.StoreFor(k_, &add_k);
  args.dv = graph.StoreFor(v_, &add_v);
  if (!graph.status().ok()) return graph.status();
  if (Status status = backward_.Prepare(args, graph.pool(), job); !status.ok()) return status;
  if (Status status = graph.AddStored(q_, args.dq, add_q, job); !status.ok()) return status;
  if (Status status = graph.AddStored(k_, args.dk, add_k, job); !status.ok()) return status;
  return graph.AddStored(v_, args.dv, add_v, job);
}

}  // namespace headwise
