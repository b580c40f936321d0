// Cache: a stretch of a step's tokens: all of them, unless a ring must make room in between.
#pragma once

#include <cstdint>

#include "headwise/kv_cache.h"

namespace headwise {

struct KeyValueStep::Piece {
  Piece* next = nullptr;
  KeyValueStep* step = nullptr;
  KeyValueCache* cache = nullptr;
  std::int32_t first = 0;  // row of the step
  std::int32_t rows = 0;
  AttentionForward attention;
  AttentionForward sink_attention;
  // [B]
  std::int32_t* starts = nullptr;    // place of the first row
  std::int32_t* counts = nullptr;    // rows
  std::int32_t* occupied = nullptr;  // slots in use after it
  std::int32_t* totals = nullptr;    // length after it
  // [B], for sink tokens apart: the same of the ring alone, and the sink tokens there are.
  std::int32_t* ring_starts = nullptr;
  std::int32_t* ring_occupied = nullptr;
  std::int32_t* ring_totals = nullptr;
  std::int32_t* sinks = nullptr;

  // In one block with its arrays; null without memory, `bytes` being what was wanted.
  static Piece* Make(std::int32_t batch, std::uint64_t& bytes);
  static void Destroy(Piece* piece);

  // The phases.
  void Claim() const;
  void Append(std::int64_t index) const;
  void Grow() const;

  static std::int64_t Blocks(std::int32_t rows);  // of rows that a task appends
};

}  // namespace headwise
