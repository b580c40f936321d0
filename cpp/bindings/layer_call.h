// Binding layer: the arguments of a layer's forward pass, with the layer they go to.
#pragma once

#include "headwise/field.h"
#include "headwise/multi_head_attention.h"

namespace headwise::binding {

struct LayerForwardArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "fields/layer_forward_args.def"  // its fields and what they mean
};

}  // namespace headwise::binding
