// Binding layer: the arguments of a layer's forward pass, with the layer they go to.
#pragma once

#include "headwise/multi_head_attention.h"

namespace headwise::binding {

struct LayerForwardArgs {
  const MultiHeadAttention* layer = nullptr;
  MultiHeadAttentionArgs call;
};

}  // namespace headwise::binding
