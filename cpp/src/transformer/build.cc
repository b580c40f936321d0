// Transformer: a Transformer as a graph.
#include "transformer/build.h"

#include <cmath>

namespace headwise {
namespace {

bool Outside(const std::int32_t* ids, std::int64_t count, std::int32_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) return true;
  }
  return false;
}

}  // namespace

Status CheckSource(const TransformerConfig& c, const TransformerBatch& b) {
  if (b.batch < 0) return Status::InvalidShape("batch");
  if (b.source_length < 1 || b.source_length > c.most_positions) return Status::InvalidShape("source");
  if (c.source_width > 0) return b.source_vectors == nullptr ? Status::InvalidValue("source_vectors") : Status::Ok();
  if (b.source == nullptr || Outside(b.source, std::int64_t{b.batch} * b.source_length, c.source_vocabulary)) {
    return Status::InvalidValue("source");
  }
  return Status::Ok();
}

Status CheckTarget(const TransformerConfig& c, const TransformerBatch& b) {
  if (b.batch < 0) return Status::InvalidShape("batch");
  if (b.target_length < 1 || b.target_length > c.most_positions) return Status::InvalidShape("target");
  if (b.target == nullptr || Outside(b.target, std::int64_t{b.batch} * b.target_length, c.target_vocabulary)) {
    return Status::InvalidValue("target");
  }
  return Status::Ok();
}

TransformerBuild::Path::Path(const char* stack, std::int32_t layer) : Path(stack, ".layers.") {
  char digits[12] = {};
  char* at = digits + sizeof(digits) - 1;
  do {
    *--at = static_cast<char>('0' + layer % 10);
    layer /= 10;
  } while (layer > 0);
  std::memcpy(text + std::strlen(text), at, std::strlen(at));
}

Value* TransformerBuild::Logits() {
  Value* memory = c_.kind != TransformerKind::kDecoder ? Memory() : nullptr;
  if (c_.kind == TransformerKind::kEncoder) return Generated(memory);
  return Generated(Stack("decoder", c_.decoder_layers, Target(), memory, batch_.target_length));
}

Value* TransformerBuild::Memory() {
  return Stack("encoder", c_.encoder_layers, Source(), nullptr, batch_.source_length);
}

void TransformerBuild::ReadMemory(Value* memory, TransformerDecoding& decoding) {
  for (std::int32_t layer = 0; layer < c_.decoder_layers && graph_.status().ok(); ++layer) {
    const Path name(Path("decoder", layer).text, ".multihead_attn");
    Projected(memory, name.text, 1, decoding.memory_keys(layer));
    Projected(memory, name.text, 2, decoding.memory_values(layer));
  }
}

Value* TransformerBuild::NextLogits(TransformerDecoding& decoding) {
  decoding_ = &decoding;
  Value* x = Stack("decoder", c_.decoder_layers, Target(), nullptr, batch_.target_length);
  return Generated(graph_.LastRows(x, batch_.target_length));
}

Value* TransformerBuild::Generated(Value* x) {
  graph_.Enter("generator");
  const char* generator = c_.tied != 0 ? "target_embedding.weight" : "generator.weight";
  return graph_.Linear(x, Find(generator), Find("generator.bias"));
}

Value* TransformerBuild::Find(const char* name, std::int32_t first, std::int32_t rows) {
  return graph_.Parameter(model_.parameters(), model_.parameters().Find(name), first, rows);
}

Value* TransformerBuild::Embedded(const char* name, const char* position, const std::int32_t* ids,
                                  std::int32_t length) {
  graph_.Enter(name);
  const float scale = c_.scale_embedding != 0 ? std::sqrt(static_cast<float>(c_.embed_dim)) : 1.0F;
  Value* x =
      graph_.Embed(Find(Path(name, ".weight").text), ids, batch_.batch * length, scale, Positions(position), length);
  return graph_.Dropout(x, c_.dropout);
}

// From where the batch begins.
Value* TransformerBuild::Positions(const char* learned) {
  const std::int32_t past = decoding_ != nullptr ? decoding_->length_ : 0;
  const std::int32_t rows = c_.most_positions - past;
  switch (c_.position) {
    case PositionKind::kSinusoidal:
      return graph_.Given(model_.positions() + std::int64_t{past} * c_.embed_dim, rows, c_.embed_dim);
    case PositionKind::kLearned:
      return Find(learned, past, rows);
    case PositionKind::kNone:
    case PositionKind::kRotary:
      break;
  }
  return nullptr;
}

Value* TransformerBuild::Source() {
  const std::int32_t length = batch_.source_length;
  if (c_.source_width == 0) {
    return Embedded("source_embedding", "source_position.weight", batch_.source, length);
  }
  graph_.Enter("source_projection");
  Value* patches = graph_.Given(batch_.source_vectors, batch_.batch * length, c_.source_width);
  Value* x = graph_.Linear(patches, Find("source_projection.weight"), Find("source_projection.bias"));
  return graph_.Dropout(graph_.AddPositions(x, Positions("source_position.weight"), length), c_.dropout);
}

Value* TransformerBuild::Target() {
  return Embedded("target_embedding", "target_position.weight", batch_.target, batch_.target_length);
}

Value* TransformerBuild::Norm(Value* x, const char* name) {
  graph_.Enter(name);
  NormParameters p;
  p.kind = static_cast<GraphNorm>(c_.norm);
  p.epsilon = c_.epsilon;
  p.gain = Find(Path(name, ".weight").text);
  if (c_.norm != TransformerNorm::kRms) p.shift = Find(Path(name, ".bias").text);
  if (c_.norm == TransformerNorm::kBatch) {
    const ParameterArena& buffers = model_.buffers();
    const auto find = [&](const char* moment) {
      const std::int32_t index = buffers.Find(Path(name, moment).text);
      return graph_.training() ? buffers.gradient(index) : buffers.value(index);
    };
    p.running_mean = find(".running_mean");
    p.running_variance = find(".running_var");
  }
  return graph_.Normalize(x, p);
}

Value* TransformerBuild::Projected(Value* x, const char* name, int part, float* into) {
  const std::int32_t e = c_.embed_dim;
  const std::int32_t kv = e / c_.heads * c_.kv_heads;
  const std::int32_t first[] = {0, e, e + kv};
  const std::int32_t rows = part == 0 ? e : kv;
  const Path weight(name, ".in_proj_weight");
  const Path bias(name, ".in_proj_bias");
  return graph_.Linear(x, Find(weight.text, first[part], rows), Find(bias.text, first[part], rows), into);
}

Value* TransformerBuild::Turned(Value* x, std::int32_t heads, std::int32_t length) {
  if (c_.position != PositionKind::kRotary) return x;
  RotaryArgs options;
  options.batch = batch_.batch;
  options.heads = heads;
  options.rows = length;
  options.rope = c_.rope;
  return graph_.Rotate(x, options);
}

Value* TransformerBuild::Attention(Value* x, const char* name, const Reading& reading) {
  graph_.Enter(name);
  AttentionArgs options;
  options.batch = batch_.batch;
  options.heads = c_.heads;
  options.kv_heads = c_.kv_heads;
  options.queries = reading.length;
  const std::int32_t head_dim = c_.embed_dim / c_.heads;
  options.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  Value* q = Projected(x, name, 0);
  Value* y = nullptr;
  if (decoding_ != nullptr && reading.cross) {
    const std::int32_t s = decoding_->source_length_;
    options.keys = s;
    options.mask = decoding_->source_mask_;
    options.mask_strides = {0, 0, 0, 1};
    Value* k = graph_.Given(decoding_->memory_keys(reading.layer), s, decoding_->kv_width_);
    Value* v = graph_.Given(decoding_->memory_values(reading.layer), s, decoding_->kv_width_);
    y = graph_.Attend(q, k, v, options, 0.0F);
  } else if (decoding_ != nullptr) {
    options.keys = decoding_->length_ + reading.length;
    options.causal = 1;
    y = graph_.AttendCached(q, Projected(x, name, 1), Projected(x, name, 2), options,
                            decoding_->caches_[reading.layer]);
  } else {
    Value* from = reading.cross ? reading.memory : x;
    Value* k = Projected(from, name, 1);
    if (!reading.cross) {
      q = Turned(q, c_.heads, reading.length);
      k = Turned(k, c_.kv_heads, reading.length);
    }
    options.keys = reading.cross ? batch_.source_length : reading.length;
    SetScope(batch_, reading.scope, &options);
    if (weights_ != nullptr) {
      options.weights = weights_;
      weights_ += std::int64_t{batch_.batch} * c_.heads * reading.length * options.keys;
    }
    y = graph_.Attend(q, k, Projected(from, name, 2), options, c_.dropout);
  }
  return graph_.Linear(y, Find(Path(name, ".out_proj.weight").text), Find(Path(name, ".out_proj.bias").text));
}

Value* TransformerBuild::FeedForward(Value* x, const char* layer) {
  graph_.Enter(Path(layer, ".linear1").text);
  Value* inner = graph_.Linear(x, Find(Path(layer, ".linear1.weight").text), Find(Path(layer, ".linear1.bias").text));
  inner = graph_.Dropout(graph_.Activate(inner, c_.activation), c_.dropout);
  graph_.Enter(Path(layer, ".linear2").text);
  return graph_.Linear(inner, Find(Path(layer, ".linear2.weight").text), Find(Path(layer, ".linear2.bias").text));
}

// x + branch(norm(x)), or norm(x + branch(x)).
template <class Branch>
Value* TransformerBuild::Residual(Value* x, const char* norm, Branch&& branch) {
  if (c_.norm_first != 0) return graph_.Add(x, graph_.Dropout(branch(Norm(x, norm)), c_.dropout));
  return Norm(graph_.Add(x, graph_.Dropout(branch(x), c_.dropout)), norm);
}

Value* TransformerBuild::Stack(const char* name, std::int32_t layers, Value* x, Value* memory, std::int32_t length) {
  const bool decoder = name[0] == 'd';
  const TransformerAttention scope = decoder ? TransformerAttention::kTarget : TransformerAttention::kSource;
  const bool cross = decoder && c_.kind == TransformerKind::kEncoderDecoder;
  for (std::int32_t n = 0; n < layers && graph_.status().ok(); ++n) {
    const Path layer(name, n);
    std::int32_t norm = 0;
    static constexpr const char* kNorms[] = {".norm1", ".norm2", ".norm3"};
    x = Residual(x, Path(layer.text, kNorms[norm++]).text, [&](Value* y) {
      return Attention(y, Path(layer.text, ".self_attn").text, {n, length, nullptr, false, scope});
    });
    if (cross) {
      x = Residual(x, Path(layer.text, kNorms[norm++]).text, [&](Value* y) {
        return Attention(y, Path(layer.text, ".multihead_attn").text,
                         {n, length, memory, true, TransformerAttention::kMemory});
      });
    }
    x = Residual(x, Path(layer.text, kNorms[norm]).text, [&](Value* y) { return FeedForward(y, layer.text); });
  }
  return c_.final_norm != 0 && layers > 0 && graph_.status().ok() ? Norm(x, Path(name, ".norm").text) : x;
}

}  // namespace headwise
