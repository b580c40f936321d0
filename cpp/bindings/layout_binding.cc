// Binding layer: publishes where each field of each argument struct lies, so that JavaScript fills the structs in place
// and no offset is ever written down a second time.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "headwise/attention.h"
#include "headwise/attention_backward.h"
#include "headwise/embedding.h"
#include "headwise/kv_cache.h"
#include "headwise/linear.h"
#include "headwise/merge.h"
#include "headwise/multi_head_attention.h"
#include "headwise/positional_encoding.h"
#include "headwise/rotary.h"
#include "headwise/transformer_decoding.h"
#include "layer_call.h"
#include "transformer_call.h"

namespace headwise::binding {
namespace {

using emscripten::val;

// How JavaScript is to write a field: 'i32', 'u32' (pointers too), 'f32', or 'struct' for one filled field by field.
template <class T>
constexpr const char* KindOf() {
  if constexpr (std::is_pointer_v<T>) {
    static_assert(sizeof(T) == 4);
    return "u32";
  } else if constexpr (std::is_same_v<T, float>) {
    return "f32";
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return "u32";
  } else if constexpr (std::is_same_v<T, std::int32_t> || std::is_enum_v<T>) {
    static_assert(sizeof(T) == 4);
    return "i32";
  } else {
    static_assert(std::is_class_v<T> || std::is_array_v<T>, "a field of a kind that JavaScript cannot write");
    return "struct";
  }
}

class Table {
 public:
  explicit Table(std::size_t size) { table_.set("size", size); }
  void Add(const char* name, std::size_t offset, const char* kind) {
    val entry = val::array();
    entry.set(0, offset);
    entry.set(1, val(kind));
    fields_.set(name, entry);
  }
  val Finish() {
    table_.set("fields", fields_);
    return table_;
  }

 private:
  val table_ = val::object();
  val fields_ = val::object();
};

#define HEADWISE_FIELD(table, Struct, field) \
  (table).Add(#field, offsetof(Struct, field), KindOf<std::remove_cv_t<decltype(Struct::field)>>())

#define HEADWISE_STRIDES(table, Struct, field) \
  HEADWISE_FIELD(table, Struct, field.batch);  \
  HEADWISE_FIELD(table, Struct, field.head);   \
  HEADWISE_FIELD(table, Struct, field.row)

#define HEADWISE_BROADCAST_STRIDES(table, Struct, field) \
  HEADWISE_STRIDES(table, Struct, field);                \
  HEADWISE_FIELD(table, Struct, field.column)

#define HEADWISE_ROTARY_SCALING(table, Struct, field)   \
  HEADWISE_FIELD(table, Struct, field.rule);            \
  HEADWISE_FIELD(table, Struct, field.factor);          \
  HEADWISE_FIELD(table, Struct, field.original_length); \
  HEADWISE_FIELD(table, Struct, field.low);             \
  HEADWISE_FIELD(table, Struct, field.high);            \
  HEADWISE_FIELD(table, Struct, field.magnitude)

#define HEADWISE_SCOPE(table, Struct, field)                     \
  HEADWISE_FIELD(table, Struct, field.mask);                     \
  HEADWISE_BROADCAST_STRIDES(table, Struct, field.mask_strides); \
  HEADWISE_FIELD(table, Struct, field.bias);                     \
  HEADWISE_BROADCAST_STRIDES(table, Struct, field.bias_strides)

val AttentionTable() {
  Table table(sizeof(AttentionArgs));
  HEADWISE_FIELD(table, AttentionArgs, batch);
  HEADWISE_FIELD(table, AttentionArgs, heads);
  HEADWISE_FIELD(table, AttentionArgs, kv_heads);
  HEADWISE_FIELD(table, AttentionArgs, queries);
  HEADWISE_FIELD(table, AttentionArgs, keys);
  HEADWISE_FIELD(table, AttentionArgs, head_dim);
  HEADWISE_FIELD(table, AttentionArgs, value_dim);
  HEADWISE_FIELD(table, AttentionArgs, q);
  HEADWISE_FIELD(table, AttentionArgs, k);
  HEADWISE_FIELD(table, AttentionArgs, v);
  HEADWISE_FIELD(table, AttentionArgs, out);
  HEADWISE_STRIDES(table, AttentionArgs, q_strides);
  HEADWISE_STRIDES(table, AttentionArgs, k_strides);
  HEADWISE_STRIDES(table, AttentionArgs, v_strides);
  HEADWISE_STRIDES(table, AttentionArgs, out_strides);
  HEADWISE_FIELD(table, AttentionArgs, scale);
  HEADWISE_FIELD(table, AttentionArgs, softcap);
  HEADWISE_FIELD(table, AttentionArgs, bias);
  HEADWISE_BROADCAST_STRIDES(table, AttentionArgs, bias_strides);
  HEADWISE_FIELD(table, AttentionArgs, mask);
  HEADWISE_BROADCAST_STRIDES(table, AttentionArgs, mask_strides);
  HEADWISE_FIELD(table, AttentionArgs, key_padding_mask);
  HEADWISE_FIELD(table, AttentionArgs, kv_lengths);
  HEADWISE_FIELD(table, AttentionArgs, q_lengths);
  HEADWISE_FIELD(table, AttentionArgs, causal);
  HEADWISE_FIELD(table, AttentionArgs, causal_offsets);
  HEADWISE_FIELD(table, AttentionArgs, window_left);
  HEADWISE_FIELD(table, AttentionArgs, window_right);
  HEADWISE_FIELD(table, AttentionArgs, alibi_slopes);
  HEADWISE_FIELD(table, AttentionArgs, sinks);
  HEADWISE_FIELD(table, AttentionArgs, dropout_rate);
  HEADWISE_FIELD(table, AttentionArgs, dropout_seed_low);
  HEADWISE_FIELD(table, AttentionArgs, dropout_seed_high);
  HEADWISE_FIELD(table, AttentionArgs, weights);
  HEADWISE_FIELD(table, AttentionArgs, weight_heads);
  HEADWISE_FIELD(table, AttentionArgs, weight_head_count);
  HEADWISE_FIELD(table, AttentionArgs, scores);
  HEADWISE_FIELD(table, AttentionArgs, score_stage);
  HEADWISE_FIELD(table, AttentionArgs, log_sum_exp);
  HEADWISE_STRIDES(table, AttentionArgs, log_sum_exp_strides);
  HEADWISE_FIELD(table, AttentionArgs, mask_bits);
  HEADWISE_FIELD(table, AttentionArgs, block_size);
  HEADWISE_FIELD(table, AttentionArgs, block_rows);
  HEADWISE_FIELD(table, AttentionArgs, block_columns);
  HEADWISE_FIELD(table, AttentionArgs, q_starts);
  HEADWISE_FIELD(table, AttentionArgs, k_starts);
  return table.Finish();
}

val AttentionBackwardTable() {
  Table table(sizeof(AttentionBackwardArgs));
  HEADWISE_FIELD(table, AttentionBackwardArgs, attention);
  HEADWISE_FIELD(table, AttentionBackwardArgs, d_out);
  HEADWISE_FIELD(table, AttentionBackwardArgs, dq);
  HEADWISE_FIELD(table, AttentionBackwardArgs, dk);
  HEADWISE_FIELD(table, AttentionBackwardArgs, dv);
  HEADWISE_FIELD(table, AttentionBackwardArgs, d_bias);
  HEADWISE_FIELD(table, AttentionBackwardArgs, d_sinks);
  return table.Finish();
}

val LayerConfigTable() {
  Table table(sizeof(MultiHeadAttentionConfig));
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, embed_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, heads);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, kv_heads);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, head_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, value_head_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, key_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, value_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, output_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, bias);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, merge);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, projection);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, kernel_size);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, causal_convolution);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, score);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, rope_dim);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, rope_base);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, rope_interleaved);
  HEADWISE_ROTARY_SCALING(table, MultiHeadAttentionConfig, rope_scaling);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, seed_low);
  HEADWISE_FIELD(table, MultiHeadAttentionConfig, seed_high);
  return table.Finish();
}

val LayerForwardTable() {
  Table table(sizeof(LayerForwardArgs));
  HEADWISE_FIELD(table, LayerForwardArgs, layer);
  HEADWISE_FIELD(table, LayerForwardArgs, call.attention);
  HEADWISE_FIELD(table, LayerForwardArgs, call.query);
  HEADWISE_FIELD(table, LayerForwardArgs, call.key);
  HEADWISE_FIELD(table, LayerForwardArgs, call.value);
  HEADWISE_FIELD(table, LayerForwardArgs, call.output);
  HEADWISE_FIELD(table, LayerForwardArgs, call.average_weights);
  return table.Finish();
}

val ParameterSourcesTable() {
  Table table(sizeof(ParameterSources));
  HEADWISE_FIELD(table, ParameterSources, data);
  return table.Finish();
}

val CacheConfigTable() {
  Table table(sizeof(KeyValueCacheConfig));
  HEADWISE_FIELD(table, KeyValueCacheConfig, batch);
  HEADWISE_FIELD(table, KeyValueCacheConfig, kv_heads);
  HEADWISE_FIELD(table, KeyValueCacheConfig, head_dim);
  HEADWISE_FIELD(table, KeyValueCacheConfig, value_dim);
  HEADWISE_FIELD(table, KeyValueCacheConfig, capacity);
  HEADWISE_FIELD(table, KeyValueCacheConfig, cell_type);
  HEADWISE_FIELD(table, KeyValueCacheConfig, window);
  HEADWISE_FIELD(table, KeyValueCacheConfig, sink_tokens);
  HEADWISE_FIELD(table, KeyValueCacheConfig, rope_dim);
  HEADWISE_FIELD(table, KeyValueCacheConfig, rope_base);
  HEADWISE_FIELD(table, KeyValueCacheConfig, rope_interleaved);
  HEADWISE_ROTARY_SCALING(table, KeyValueCacheConfig, rope_scaling);
  return table.Finish();
}

val CacheStepTable() {
  Table table(sizeof(KeyValueStepArgs));
  HEADWISE_FIELD(table, KeyValueStepArgs, cache);
  HEADWISE_FIELD(table, KeyValueStepArgs, call);
  return table.Finish();
}

val RotaryTable() {
  Table table(sizeof(RotaryArgs));
  HEADWISE_FIELD(table, RotaryArgs, batch);
  HEADWISE_FIELD(table, RotaryArgs, heads);
  HEADWISE_FIELD(table, RotaryArgs, rows);
  HEADWISE_FIELD(table, RotaryArgs, size);
  HEADWISE_FIELD(table, RotaryArgs, dim);
  HEADWISE_FIELD(table, RotaryArgs, interleaved);
  HEADWISE_FIELD(table, RotaryArgs, base);
  HEADWISE_ROTARY_SCALING(table, RotaryArgs, scaling);
  HEADWISE_FIELD(table, RotaryArgs, x);
  HEADWISE_FIELD(table, RotaryArgs, y);
  HEADWISE_STRIDES(table, RotaryArgs, x_strides);
  HEADWISE_STRIDES(table, RotaryArgs, y_strides);
  HEADWISE_FIELD(table, RotaryArgs, position);
  HEADWISE_FIELD(table, RotaryArgs, row_positions);
  HEADWISE_FIELD(table, RotaryArgs, row_positions_batch);
  HEADWISE_FIELD(table, RotaryArgs, cos);
  HEADWISE_FIELD(table, RotaryArgs, sin);
  HEADWISE_FIELD(table, RotaryArgs, table_rows);
  return table.Finish();
}

val MergeTable() {
  Table table(sizeof(MergeArgs));
  HEADWISE_FIELD(table, MergeArgs, parts);
  HEADWISE_FIELD(table, MergeArgs, batch);
  HEADWISE_FIELD(table, MergeArgs, heads);
  HEADWISE_FIELD(table, MergeArgs, rows);
  HEADWISE_FIELD(table, MergeArgs, size);
  HEADWISE_FIELD(table, MergeArgs, outputs);
  HEADWISE_FIELD(table, MergeArgs, log_sum_exps);
  HEADWISE_FIELD(table, MergeArgs, out);
  HEADWISE_FIELD(table, MergeArgs, log_sum_exp);
  HEADWISE_STRIDES(table, MergeArgs, strides);
  return table.Finish();
}

val LinearTable() {
  Table table(sizeof(LinearArgs));
  HEADWISE_FIELD(table, LinearArgs, rows);
  HEADWISE_FIELD(table, LinearArgs, in);
  HEADWISE_FIELD(table, LinearArgs, out);
  HEADWISE_FIELD(table, LinearArgs, x);
  HEADWISE_FIELD(table, LinearArgs, kernel);
  HEADWISE_FIELD(table, LinearArgs, bias);
  HEADWISE_FIELD(table, LinearArgs, y);
  return table.Finish();
}

val EmbeddingTable() {
  Table table(sizeof(EmbeddingArgs));
  HEADWISE_FIELD(table, EmbeddingArgs, rows);
  HEADWISE_FIELD(table, EmbeddingArgs, vocabulary);
  HEADWISE_FIELD(table, EmbeddingArgs, width);
  HEADWISE_FIELD(table, EmbeddingArgs, ids);
  HEADWISE_FIELD(table, EmbeddingArgs, table);
  HEADWISE_FIELD(table, EmbeddingArgs, y);
  return table.Finish();
}

val PositionalEncodingTable() {
  Table table(sizeof(PositionalEncodingArgs));
  HEADWISE_FIELD(table, PositionalEncodingArgs, length);
  HEADWISE_FIELD(table, PositionalEncodingArgs, width);
  HEADWISE_FIELD(table, PositionalEncodingArgs, first_position);
  HEADWISE_FIELD(table, PositionalEncodingArgs, y);
  return table.Finish();
}

val TransformerConfigTable() {
  Table table(sizeof(TransformerConfig));
  HEADWISE_FIELD(table, TransformerConfig, kind);
  HEADWISE_FIELD(table, TransformerConfig, embed_dim);
  HEADWISE_FIELD(table, TransformerConfig, heads);
  HEADWISE_FIELD(table, TransformerConfig, kv_heads);
  HEADWISE_FIELD(table, TransformerConfig, feed_forward);
  HEADWISE_FIELD(table, TransformerConfig, encoder_layers);
  HEADWISE_FIELD(table, TransformerConfig, decoder_layers);
  HEADWISE_FIELD(table, TransformerConfig, source_vocabulary);
  HEADWISE_FIELD(table, TransformerConfig, source_width);
  HEADWISE_FIELD(table, TransformerConfig, target_vocabulary);
  HEADWISE_FIELD(table, TransformerConfig, most_positions);
  HEADWISE_FIELD(table, TransformerConfig, norm);
  HEADWISE_FIELD(table, TransformerConfig, norm_first);
  HEADWISE_FIELD(table, TransformerConfig, final_norm);
  HEADWISE_FIELD(table, TransformerConfig, activation);
  HEADWISE_FIELD(table, TransformerConfig, position);
  HEADWISE_FIELD(table, TransformerConfig, rope_dim);
  HEADWISE_FIELD(table, TransformerConfig, rope_base);
  HEADWISE_FIELD(table, TransformerConfig, rope_interleaved);
  HEADWISE_ROTARY_SCALING(table, TransformerConfig, rope_scaling);
  HEADWISE_FIELD(table, TransformerConfig, tied);
  HEADWISE_FIELD(table, TransformerConfig, scale_embedding);
  HEADWISE_FIELD(table, TransformerConfig, epsilon);
  HEADWISE_FIELD(table, TransformerConfig, dropout);
  HEADWISE_FIELD(table, TransformerConfig, seed_low);
  HEADWISE_FIELD(table, TransformerConfig, seed_high);
  return table.Finish();
}

val TransformerBatchTable() {
  Table table(sizeof(TransformerBatch));
  HEADWISE_FIELD(table, TransformerBatch, batch);
  HEADWISE_FIELD(table, TransformerBatch, source_length);
  HEADWISE_FIELD(table, TransformerBatch, target_length);
  HEADWISE_FIELD(table, TransformerBatch, source);
  HEADWISE_FIELD(table, TransformerBatch, source_vectors);
  HEADWISE_FIELD(table, TransformerBatch, source_mask);
  HEADWISE_FIELD(table, TransformerBatch, target);
  HEADWISE_FIELD(table, TransformerBatch, labels);
  HEADWISE_FIELD(table, TransformerBatch, ignored_label);
  HEADWISE_FIELD(table, TransformerBatch, target_mask);
  HEADWISE_FIELD(table, TransformerBatch, memory_mask);
  HEADWISE_FIELD(table, TransformerBatch, target_open);
  HEADWISE_SCOPE(table, TransformerBatch, source_scope);
  HEADWISE_SCOPE(table, TransformerBatch, target_scope);
  HEADWISE_SCOPE(table, TransformerBatch, memory_scope);
  return table.Finish();
}

val TransformerForwardTable() {
  Table table(sizeof(TransformerForwardArgs));
  HEADWISE_FIELD(table, TransformerForwardArgs, model);
  HEADWISE_FIELD(table, TransformerForwardArgs, batch);
  HEADWISE_FIELD(table, TransformerForwardArgs, logits);
  HEADWISE_FIELD(table, TransformerForwardArgs, weights);
  return table.Finish();
}

val TransformerStepTable() {
  Table table(sizeof(TransformerStepArgs));
  HEADWISE_FIELD(table, TransformerStepArgs, model);
  HEADWISE_FIELD(table, TransformerStepArgs, batch);
  HEADWISE_FIELD(table, TransformerStepArgs, optimizer);
  HEADWISE_FIELD(table, TransformerStepArgs, momentum);
  HEADWISE_FIELD(table, TransformerStepArgs, beta1);
  HEADWISE_FIELD(table, TransformerStepArgs, beta2);
  HEADWISE_FIELD(table, TransformerStepArgs, epsilon);
  HEADWISE_FIELD(table, TransformerStepArgs, weight_decay);
  HEADWISE_FIELD(table, TransformerStepArgs, rate);
  HEADWISE_FIELD(table, TransformerStepArgs, step);
  HEADWISE_FIELD(table, TransformerStepArgs, smoothing);
  HEADWISE_FIELD(table, TransformerStepArgs, max_norm);
  HEADWISE_FIELD(table, TransformerStepArgs, part);
  HEADWISE_FIELD(table, TransformerStepArgs, parts);
  HEADWISE_FIELD(table, TransformerStepArgs, counted);
  HEADWISE_FIELD(table, TransformerStepArgs, result);
  return table.Finish();
}

val TransformerDecodeTable() {
  Table table(sizeof(TransformerDecodeArgs));
  HEADWISE_FIELD(table, TransformerDecodeArgs, model);
  HEADWISE_FIELD(table, TransformerDecodeArgs, decoding);
  HEADWISE_FIELD(table, TransformerDecodeArgs, source_length);
  HEADWISE_FIELD(table, TransformerDecodeArgs, source);
  HEADWISE_FIELD(table, TransformerDecodeArgs, source_vectors);
  HEADWISE_FIELD(table, TransformerDecodeArgs, source_mask);
  HEADWISE_FIELD(table, TransformerDecodeArgs, target_length);
  HEADWISE_FIELD(table, TransformerDecodeArgs, target);
  HEADWISE_FIELD(table, TransformerDecodeArgs, logits);
  return table.Finish();
}

// { AttentionArgs: { size, fields: { batch: [offset, kind], …, 'q_strides.batch': … } }, … }
val Layout() {
  val layout = val::object();
  layout.set("AttentionArgs", AttentionTable());
  layout.set("AttentionBackwardArgs", AttentionBackwardTable());
  layout.set("MultiHeadAttentionConfig", LayerConfigTable());
  layout.set("LayerForwardArgs", LayerForwardTable());
  layout.set("ParameterSources", ParameterSourcesTable());
  layout.set("KeyValueCacheConfig", CacheConfigTable());
  layout.set("KeyValueStepArgs", CacheStepTable());
  layout.set("RotaryArgs", RotaryTable());
  layout.set("MergeArgs", MergeTable());
  layout.set("TransformerConfig", TransformerConfigTable());
  layout.set("TransformerBatch", TransformerBatchTable());
  layout.set("TransformerForwardArgs", TransformerForwardTable());
  layout.set("TransformerStepArgs", TransformerStepTable());
  layout.set("TransformerDecodeArgs", TransformerDecodeTable());
  layout.set("LinearArgs", LinearTable());
  layout.set("EmbeddingArgs", EmbeddingTable());
  layout.set("PositionalEncodingArgs", PositionalEncodingTable());
  return layout;
}

}  // namespace

EMSCRIPTEN_BINDINGS(headwise_layout) { emscripten::function("layout", &Layout); }

}  // namespace headwise::binding
