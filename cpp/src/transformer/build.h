// Transformer: a Transformer as a graph. Start reading at Logits.
#pragma once

#include <cstdint>
#include <cstring>

#include "graph/graph.h"
#include "headwise/transformer.h"
#include "headwise/transformer_decoding.h"
#include "transformer/scope.h"

namespace headwise {

// Tokens and lengths that the model can read; kInvalidShape or kInvalidValue names what is wrong.
Status CheckSource(const TransformerConfig& config, const TransformerBatch& batch);
Status CheckTarget(const TransformerConfig& config, const TransformerBatch& batch);

inline std::uint64_t SeedOf(const TransformerConfig& c) { return (std::uint64_t{c.seed_high} << 32U) | c.seed_low; }

// After a failure a result is null, and the graph's status names the cause. Borrows everything.
class TransformerBuild {
 public:
  // `weights` null: the weights of attention are not wanted.
  TransformerBuild(const Transformer& model, const TransformerBatch& batch, float* weights, Graph& graph)
      : model_(model), c_(model.config()), batch_(batch), weights_(weights), graph_(graph) {}

  // Of every row of the target, with kEncoder of the source.
  Value* Logits();
  // The encoder's output.
  Value* Memory();
  // Leaves the keys and values of the encoder's output in the decoding.
  void ReadMemory(Value* memory, TransformerDecoding& decoding);
  // Behind the last of the batch's target tokens, which follow upon what the decoding has read: [rows, target_vocabulary].
  Value* NextLogits(TransformerDecoding& decoding);

 private:
  // prefix + name
  struct Path {
    char text[ParameterArena::kMostName] = {};
    Path(const char* prefix, const char* name) {
      const std::size_t length = std::strlen(prefix);
      std::memcpy(text, prefix, length);
      std::memcpy(text + length, name, std::strlen(name));
    }
    Path(const char* stack, std::int32_t layer);
  };
  // Where a layer's attention finds what it reads.
  struct Reading {
    std::int32_t layer = 0;
    std::int32_t length = 0;  // queries
    Value* memory = nullptr;  // null: self-attention, unless `cross`
    bool cross = false;
    TransformerAttention scope = TransformerAttention::kSource;
  };

  Value* Find(const char* name, std::int32_t first = 0, std::int32_t rows = -1);
  Value* Generated(Value* x);
  Value* Embedded(const char* name, const char* position, const std::int32_t* ids, std::int32_t length);
  Value* Positions(const char* learned);
  Value* Source();
  Value* Target();
  Value* Norm(Value* x, const char* name);
  // 0 queries, 1 keys, 2 values.
  Value* Projected(Value* x, const char* name, int part, float* into = nullptr);
  // By their positions, if those are rotary.
  Value* Turned(Value* x, std::int32_t heads, std::int32_t length);
  Value* Attention(Value* x, const char* name, const Reading& reading);
  Value* FeedForward(Value* x, const char* layer);
  template <class Branch>
  Value* Residual(Value* x, const char* norm, Branch&& branch);
  Value* Stack(const char* name, std::int32_t layers, Value* x, Value* memory, std::int32_t length);

  const Transformer& model_;
  const TransformerConfig& c_;
  const TransformerBatch& batch_;
  float* weights_;
  Graph& graph_;
  TransformerDecoding* decoding_ = nullptr;
};

}  // namespace headwise
