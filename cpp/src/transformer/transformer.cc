// Transformer: a Transformer's parameters: their names, shapes and start values.
#include "headwise/transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headwise/positional_encoding.h"
#include "headwise/random.h"

namespace headwise {
namespace {

// "a" + "b" + number, cut at what a name holds; the arena refuses what was cut.
struct Name {
  char text[ParameterArena::kMostName] = {};
  Name& operator<<(const char* more) {
    const std::size_t length = std::strlen(text);
    const std::size_t left = sizeof(text) - 1 - length;
    std::memcpy(text + length, more, std::min(left, std::strlen(more)));
    return *this;
  }
  Name& operator<<(std::int32_t number) {
    char digits[12] = {};
    char* at = digits + sizeof(digits) - 1;
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << at;
  }
};

bool EndsWith(const char* text, const char* end) {
  const std::size_t length = std::strlen(text);
  const std::size_t tail = std::strlen(end);
  return length >= tail && std::strcmp(text + length - tail, end) == 0;
}

Status CheckConfig(const TransformerConfig& c) {
  if (c.embed_dim < 1) return Status::InvalidValue("embed_dim");
  if (c.heads < 1 || c.embed_dim % c.heads != 0) return Status::InvalidValue("heads");
  if (c.kv_heads < 1 || c.heads % c.kv_heads != 0) return Status::InvalidValue("kv_heads");
  if (c.position == PositionKind::kRotary) {
    if (Status s = CheckRotarySettings(c.rope, c.embed_dim / c.heads); !s.ok()) return s;
    if (c.rope.cos != nullptr && c.rope.table_rows < c.most_positions) return Status::InvalidShape("rope.cos");
  }
  if (c.feed_forward < 1) return Status::InvalidValue("feed_forward");
  const bool encoder = c.kind != TransformerKind::kDecoder;
  const bool decoder = c.kind != TransformerKind::kEncoder;
  if (c.encoder_layers < (encoder && !decoder ? 1 : 0)) return Status::InvalidValue("encoder_layers");
  if (c.decoder_layers < (decoder ? 1 : 0)) return Status::InvalidValue("decoder_layers");
  if (c.source_width < 0) return Status::InvalidValue("source_width");
  if (encoder && c.source_width == 0 && c.source_vocabulary < 1) return Status::InvalidValue("source_vocabulary");
  if (c.target_vocabulary < 1) return Status::InvalidValue("target_vocabulary");
  if (c.most_positions < 1) return Status::InvalidValue("most_positions");
  if (c.tied != 0 && !decoder) return Status::InvalidValue("tied");
  if (!(c.epsilon >= 0.0F)) return Status::InvalidValue("epsilon");
  if (!(c.dropout >= 0.0F && c.dropout < 1.0F)) return Status::InvalidValue("dropout");
  return Status::Ok();
}

}  // namespace

Status Transformer::AddMatrix(const char* name, std::int32_t rows, std::int32_t columns) {
  const std::int32_t shape[] = {rows, columns};
  std::int32_t index = 0;
  return parameters_.Add(name, shape, 2, &index);
}

Status Transformer::AddVector(const char* name, std::int32_t size) {
  std::int32_t index = 0;
  return parameters_.Add(name, &size, 1, &index);
}

Status Transformer::AddNorm(const char* name) {
  const std::int32_t width = config_.embed_dim;
  if (Status s = AddVector((Name() << name << ".weight").text, width); !s.ok()) return s;
  if (config_.norm == TransformerNorm::kRms) return Status::Ok();
  if (Status s = AddVector((Name() << name << ".bias").text, width); !s.ok()) return s;
  if (config_.norm != TransformerNorm::kBatch) return Status::Ok();
  std::int32_t index = 0;
  if (Status s = buffers_.Add((Name() << name << ".running_mean").text, &width, 1, &index); !s.ok()) return s;
  return buffers_.Add((Name() << name << ".running_var").text, &width, 1, &index);
}

Status Transformer::AddAttention(const char* prefix) {
  const std::int32_t e = config_.embed_dim;
  const std::int32_t rows = e + 2 * (e / config_.heads * config_.kv_heads);
  if (Status s = AddMatrix((Name() << prefix << ".in_proj_weight").text, rows, e); !s.ok()) return s;
  if (Status s = AddVector((Name() << prefix << ".in_proj_bias").text, rows); !s.ok()) return s;
  if (Status s = AddMatrix((Name() << prefix << ".out_proj.weight").text, e, e); !s.ok()) return s;
  return AddVector((Name() << prefix << ".out_proj.bias").text, e);
}

Status Transformer::AddStack(const char* name, std::int32_t layers, bool cross) {
  const std::int32_t e = config_.embed_dim;
  const std::int32_t f = config_.feed_forward;
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const Name prefix = Name() << name << ".layers." << layer;
    if (Status s = AddAttention((Name(prefix) << ".self_attn").text); !s.ok()) return s;
    if (cross) {
      if (Status s = AddAttention((Name(prefix) << ".multihead_attn").text); !s.ok()) return s;
    }
    if (Status s = AddMatrix((Name(prefix) << ".linear1.weight").text, f, e); !s.ok()) return s;
    if (Status s = AddVector((Name(prefix) << ".linear1.bias").text, f); !s.ok()) return s;
    if (Status s = AddMatrix((Name(prefix) << ".linear2.weight").text, e, f); !s.ok()) return s;
    if (Status s = AddVector((Name(prefix) << ".linear2.bias").text, e); !s.ok()) return s;
    for (std::int32_t norm = 1; norm <= (cross ? 3 : 2); ++norm) {
      if (Status s = AddNorm((Name(prefix) << ".norm" << norm).text); !s.ok()) return s;
    }
  }
  return config_.final_norm != 0 && layers > 0 ? AddNorm((Name() << name << ".norm").text) : Status::Ok();
}

Status Transformer::AddParameters() {
  const TransformerConfig& c = config_;
  const bool encoder = c.kind != TransformerKind::kDecoder;
  const bool decoder = c.kind != TransformerKind::kEncoder;
  std::int32_t index = 0;
  const std::int32_t table[] = {c.most_positions, c.embed_dim};
  if (c.position == PositionKind::kSinusoidal) {
    if (Status s = buffers_.Add("positions", table, 2, &index); !s.ok()) return s;
  }
  if (encoder && c.source_width == 0) {
    if (Status s = AddMatrix("source_embedding.weight", c.source_vocabulary, c.embed_dim); !s.ok()) return s;
  }
  if (encoder && c.source_width > 0) {
    if (Status s = AddMatrix("source_projection.weight", c.embed_dim, c.source_width); !s.ok()) return s;
    if (Status s = AddVector("source_projection.bias", c.embed_dim); !s.ok()) return s;
  }
  if (decoder) {
    if (Status s = AddMatrix("target_embedding.weight", c.target_vocabulary, c.embed_dim); !s.ok()) return s;
  }
  if (c.position == PositionKind::kLearned && encoder) {
    if (Status s = AddMatrix("source_position.weight", c.most_positions, c.embed_dim); !s.ok()) return s;
  }
  if (c.position == PositionKind::kLearned && decoder) {
    if (Status s = AddMatrix("target_position.weight", c.most_positions, c.embed_dim); !s.ok()) return s;
  }
  if (encoder) {
    if (Status s = AddStack("encoder", c.encoder_layers, false); !s.ok()) return s;
  }
  if (decoder) {
    if (Status s = AddStack("decoder", c.decoder_layers, encoder); !s.ok()) return s;
  }
  if (c.tied == 0) {
    if (Status s = AddMatrix("generator.weight", c.target_vocabulary, c.embed_dim); !s.ok()) return s;
  }
  return AddVector("generator.bias", c.target_vocabulary);
}

void Transformer::Start() {
  const std::uint64_t seed = (std::uint64_t{config_.seed_high} << 32U) | config_.seed_low;
  for (std::int32_t i = 0; i < parameters_.size(); ++i) {
    const ParameterArena::Parameter& p = parameters_.parameter(i);
    float* values = parameters_.value(i);
    const auto stream = static_cast<std::uint32_t>(4 * i);
    if (p.rank == 1) {
      // A norm's gain is the only vector that is called a weight.
      if (EndsWith(p.name, ".weight")) std::fill_n(values, p.count, 1.0F);
      continue;
    }
    const std::int32_t rows = p.shape[0];
    const std::int32_t columns = p.shape[1];
    if (EndsWith(p.name, "embedding.weight") || EndsWith(p.name, "position.weight")) {
      // Limit sqrt(3 / E): the variance 1/E.
      GlorotUniform(seed, stream, columns, columns, p.count, values);
    } else if (EndsWith(p.name, "in_proj_weight")) {
      const std::int32_t kv_rows = (rows - columns) / 2;
      for (std::uint32_t n = 0; n < 3; ++n) {
        const std::int64_t part = n == 0 ? columns : kv_rows;
        GlorotUniform(seed, stream + n, columns, static_cast<std::int32_t>(part), part * columns, values);
        values += part * columns;
      }
    } else {
      GlorotUniform(seed, stream, columns, rows, p.count, values);
    }
  }
  for (std::int32_t i = 0; i < buffers_.size(); ++i) {
    const ParameterArena::Parameter& p = buffers_.parameter(i);
    if (EndsWith(p.name, ".running_var")) std::fill_n(buffers_.value(i), p.count, 1.0F);
  }
}

Status Transformer::Init(const TransformerConfig& given, std::int32_t moments) {
  TransformerConfig config = given;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.rope.dim == 0 && config.heads > 0) config.rope.dim = config.embed_dim / config.heads;
  if (Status s = CheckConfig(config); !s.ok()) return s;
  if (parameters_.size() > 0) return Status::InvalidValue("transformer");
  if (Status s = rope_arrays_.Keep(config.rope); !s.ok()) return s;
  config_ = config;
  if (Status s = AddParameters(); !s.ok()) return s;
  if (Status s = parameters_.Allocate(moments); !s.ok()) return s;
  if (Status s = buffers_.Allocate(config.norm == TransformerNorm::kBatch && moments >= 0 ? 0 : -1); !s.ok()) return s;
  Start();
  if (config.position != PositionKind::kSinusoidal) return Status::Ok();
  ThreadPool alone(1);
  return PositionalEncoding({config.most_positions, config.embed_dim, 0, buffers_.values()}, alone);
}

}  // namespace headwise
