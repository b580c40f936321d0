// Binding layer: publishes where each field of each argument struct lies, from the lists that make the structs (field.h), so that
// JavaScript fills the structs in place and no offset is ever written down a second time.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

// How JavaScript is to write a field; a struct is filled field by field.
enum class Kind : std::uint8_t { kInt, kUnsigned, kFloat, kStruct };
constexpr const char* kKindNames[] = {"i32", "u32", "f32", "struct"};

struct Field {
  const char* name;
  std::uint32_t offset;
  Kind kind;
  std::span<const Field> inner;  // published as `name.inner`
};

// The fields of a struct. Those of a struct inside another are published with it where kFieldsOf knows them by then and
// kIsInline says so; a large one is published once, by its own name.
template <class T>
constexpr std::array<Field, 0> kFieldsOf{};
template <class T>
constexpr bool kIsInline = false;

template <class T>
constexpr Field Place(const char* name, std::size_t offset) {
  const auto at = static_cast<std::uint32_t>(offset);
  if constexpr (std::is_pointer_v<T> || std::is_same_v<T, std::uint32_t>) {
    static_assert(sizeof(T) == 4);
    return {name, at, Kind::kUnsigned, {}};
  } else if constexpr (std::is_same_v<T, float>) {
    return {name, at, Kind::kFloat, {}};
  } else if constexpr (std::is_same_v<T, std::int32_t> || std::is_enum_v<T>) {
    static_assert(sizeof(T) == 4);
    return {name, at, Kind::kInt, {}};
  } else {
    static_assert(std::is_class_v<T> || std::is_array_v<T>, "a field of a kind that JavaScript cannot write");
    if constexpr (kIsInline<T>) return {name, at, Kind::kStruct, kFieldsOf<T>};
    return {name, at, Kind::kStruct, {}};
  }
}

#define HEADWISE_PLACE(type, name, value) Place<type>(#name, offsetof(Struct, name)),

template <>
constexpr auto kFieldsOf<Strides> = [] {
  using Struct = Strides;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/strides.def"
  });
}();
template <>
constexpr bool kIsInline<Strides> = true;

template <>
constexpr auto kFieldsOf<BroadcastStrides> = [] {
  using Struct = BroadcastStrides;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/broadcast_strides.def"
  });
}();
template <>
constexpr bool kIsInline<BroadcastStrides> = true;

template <>
constexpr auto kFieldsOf<RotaryScaling> = [] {
  using Struct = RotaryScaling;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/rotary_scaling.def"
  });
}();
template <>
constexpr bool kIsInline<RotaryScaling> = true;

template <>
constexpr auto kFieldsOf<RotarySettings> = [] {
  using Struct = RotarySettings;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/rotary_settings.def"
  });
}();
template <>
constexpr bool kIsInline<RotarySettings> = true;

template <>
constexpr auto kFieldsOf<TransformerScope> = [] {
  using Struct = TransformerScope;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/transformer_scope.def"
  });
}();
template <>
constexpr bool kIsInline<TransformerScope> = true;

template <>
constexpr auto kFieldsOf<AttentionArgs> = [] {
  using Struct = AttentionArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/attention_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<TransformerBatch> = [] {
  using Struct = TransformerBatch;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/transformer_batch.def"
  });
}();

template <>
constexpr auto kFieldsOf<MultiHeadAttentionArgs> = [] {
  using Struct = MultiHeadAttentionArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/multi_head_attention_args.def"
  });
}();
template <>
constexpr bool kIsInline<MultiHeadAttentionArgs> = true;

template <>
constexpr auto kFieldsOf<AttentionBackwardArgs> = [] {
  using Struct = AttentionBackwardArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/attention_backward_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<MultiHeadAttentionConfig> = [] {
  using Struct = MultiHeadAttentionConfig;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/multi_head_attention_config.def"
  });
}();

template <>
constexpr auto kFieldsOf<ParameterSources> = [] {
  using Struct = ParameterSources;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/parameter_sources.def"
  });
}();

template <>
constexpr auto kFieldsOf<RotaryArgs> = [] {
  using Struct = RotaryArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/rotary_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<MergeArgs> = [] {
  using Struct = MergeArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/merge_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<LinearArgs> = [] {
  using Struct = LinearArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/linear_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<EmbeddingArgs> = [] {
  using Struct = EmbeddingArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/embedding_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<PositionalEncodingArgs> = [] {
  using Struct = PositionalEncodingArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/positional_encoding_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<KeyValueCacheConfig> = [] {
  using Struct = KeyValueCacheConfig;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/key_value_cache_config.def"
  });
}();

template <>
constexpr auto kFieldsOf<KeyValueStepArgs> = [] {
  using Struct = KeyValueStepArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/key_value_step_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<TransformerConfig> = [] {
  using Struct = TransformerConfig;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/transformer_config.def"
  });
}();

template <>
constexpr auto kFieldsOf<TransformerDecodeArgs> = [] {
  using Struct = TransformerDecodeArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "headwise/fields/transformer_decode_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<LayerForwardArgs> = [] {
  using Struct = LayerForwardArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "fields/layer_forward_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<TransformerForwardArgs> = [] {
  using Struct = TransformerForwardArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "fields/transformer_forward_args.def"
  });
}();

template <>
constexpr auto kFieldsOf<TransformerStepArgs> = [] {
  using Struct = TransformerStepArgs;
  return std::to_array<Field>({
#define HEADWISE_FIELD HEADWISE_PLACE
#include "fields/transformer_step_args.def"
  });
}();

struct Published {
  const char* name;
  std::uint32_t size;
  std::span<const Field> fields;
};

template <class T>
constexpr Published Publish(const char* name) {
  return {name, sizeof(T), kFieldsOf<T>};
}

#define HEADWISE_PUBLISH(Struct) Publish<Struct>(#Struct)

constexpr Published kPublished[] = {
    HEADWISE_PUBLISH(AttentionArgs),
    HEADWISE_PUBLISH(TransformerBatch),
    HEADWISE_PUBLISH(AttentionBackwardArgs),
    HEADWISE_PUBLISH(MultiHeadAttentionConfig),
    HEADWISE_PUBLISH(ParameterSources),
    HEADWISE_PUBLISH(RotaryArgs),
    HEADWISE_PUBLISH(MergeArgs),
    HEADWISE_PUBLISH(LinearArgs),
    HEADWISE_PUBLISH(EmbeddingArgs),
    HEADWISE_PUBLISH(PositionalEncodingArgs),
    HEADWISE_PUBLISH(KeyValueCacheConfig),
    HEADWISE_PUBLISH(KeyValueStepArgs),
    HEADWISE_PUBLISH(TransformerConfig),
    HEADWISE_PUBLISH(TransformerDecodeArgs),
    HEADWISE_PUBLISH(LayerForwardArgs),
    HEADWISE_PUBLISH(TransformerForwardArgs),
    HEADWISE_PUBLISH(TransformerStepArgs),
};

// `prefix`: the names of the structs around these fields, in JavaScript's form.
void Add(val& fields, const val& prefix, std::uint32_t base, std::span<const Field> list) {
  for (const Field& field : list) {
    const val name = prefix.call<val>("concat", val(field.name));
    if (!field.inner.empty()) {
      Add(fields, name.call<val>("concat", val(".")), base + field.offset, field.inner);
      continue;
    }
    val entry = val::array();
    entry.set(0, base + field.offset);
    entry.set(1, val(kKindNames[static_cast<int>(field.kind)]));
    fields.set(name, entry);
  }
}

// { AttentionArgs: { size, fields: { batch: [offset, kind], ..., 'q_strides.batch': ... } }, ... }
val Layout() {
  val layout = val::object();
  for (const Published& published : kPublished) {
    val fields = val::object();
    Add(fields, val(""), 0, published.fields);
    val table = val::object();
    table.set("size", published.size);
    table.set("fields", fields);
    layout.set(published.name, table);
  }
  return layout;
}

}  // namespace

EMSCRIPTEN_BINDINGS(headwise_layout) { emscripten::function("layout", &Layout); }

}  // namespace headwise::binding
