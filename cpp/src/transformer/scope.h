// Transformer: what each kind of a Transformer's attention may see of a batch.
#pragma once

#include "headwise/attention.h"
#include "headwise/transformer.h"

namespace headwise {

enum class TransformerAttention {
  kSource,  // the encoder's
  kTarget,  // the decoder's own
  kMemory,  // the decoder's of the encoder's output
};

inline void SetScope(const TransformerBatch& batch, TransformerAttention which, AttentionArgs* options) {
  const TransformerScope* scope = &batch.source_scope;
  options->key_padding_mask = batch.source_mask;
  if (which == TransformerAttention::kTarget) {
    scope = &batch.target_scope;
    options->key_padding_mask = batch.target_mask;
    options->causal = batch.target_open != 0 ? 0 : 1;
  } else if (which == TransformerAttention::kMemory) {
    scope = &batch.memory_scope;
    if (batch.memory_mask != nullptr) options->key_padding_mask = batch.memory_mask;
  }
  options->mask = scope->mask;
  options->mask_strides = scope->mask_strides;
  options->bias = scope->bias;
  options->bias_strides = scope->bias_strides;
}

}  // namespace headwise
