// Binding layer: the arguments of a Transformer's forward pass and training step, with the model they go to.
#pragma once

#include "headwise/field.h"
#include "headwise/transformer.h"

namespace headwise::binding {

struct TransformerForwardArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "fields/transformer_forward_args.def"  // its fields and what they mean
};

// What a step leaves in `result`, as floats: loss, counted rows, correct rows, norm of the gradients, 1 when applied; else the
// name of the module where it went wrong, as character codes, and 0 behind it.
inline constexpr int kStepNumbers = 5;
inline constexpr int kStepResults = kStepNumbers + ParameterArena::kMostName;

struct TransformerStepArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "fields/transformer_step_args.def"  // its fields and what they mean
};

}  // namespace headwise::binding
