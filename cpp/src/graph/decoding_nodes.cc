// Graph: the graph's operations for reading a target token by token.
#include "graph/decoding_nodes.h"

#include <algorithm>

namespace headwise {

CachedAttendNode::CachedAttendNode(Value* q, Value* k, Value* v, const AttentionArgs& options, KeyValueCache& cache,
                                   Value* y) {
  args_.cache = &cache;
  AttentionArgs& a = args_.call;
  a = options;
  a.head_dim = q->width / a.heads;
  a.value_dim = v->width / a.kv_heads;
  a.q = q->data;
  a.k = k->data;
  a.v = v->data;
  a.out = y->data;
  a.q_strides = {a.queries * q->width, a.head_dim, q->width};
  a.k_strides = {a.queries * k->width, a.head_dim, k->width};
  a.v_strides = {a.queries * v->width, a.value_dim, v->width};
  a.out_strides = {a.queries * y->width, a.value_dim, y->width};
}

void LastRowsNode::Copy(void* context, std::int64_t /*index*/, int /*thread*/) {
  const auto& node = *static_cast<const LastRowsNode*>(context);
  const std::int64_t width = node.y_->width;
  for (std::int64_t row = 0; row < node.y_->rows; ++row) {
    const std::int64_t from = (row + 1) * node.length_ - 1;
    std::copy_n(node.x_->data + from * width, width, node.y_->data + row * width);
  }
}

}  // namespace headwise
