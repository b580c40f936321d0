// Cache: what the phases of a step's piece do to the cache.
#include "cache/kv_piece.h"

#include <algorithm>
#include <new>

#include "attention/cells.h"
#include "kernels/kernel_table.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {
namespace {

// Tokens of one head that a task appends.
constexpr std::int32_t kAppendRows = 32;

}  // namespace

KeyValueStep::Piece* KeyValueStep::Piece::Make(std::int32_t batch, std::uint64_t& bytes) {
  const auto walk = [batch](void* block, Piece& piece) {
    Carver carver(block);
    carver.Take<Piece>(1);
    for (std::int32_t** array : {&piece.starts, &piece.counts, &piece.occupied, &piece.totals, &piece.ring_starts,
                                 &piece.ring_occupied, &piece.ring_totals, &piece.sinks}) {
      *array = carver.Take<std::int32_t>(static_cast<std::uint64_t>(batch));
    }
    return carver.used();
  };
  Piece measured;
  bytes = walk(nullptr, measured);
  void* const place = AllocateAligned(bytes);
  if (place == nullptr) return nullptr;
  auto* const piece = new (place) Piece;
  walk(place, *piece);
  return piece;
}

void KeyValueStep::Piece::Destroy(Piece* piece) {
  piece->~Piece();
  FreeAligned(piece);
}

std::int64_t KeyValueStep::Piece::Blocks(std::int32_t rows) { return (rows + kAppendRows - 1) / kAppendRows; }

// What the piece is about to overwrite is lost, even if the step is given up.
void KeyValueStep::Piece::Claim() const {
  for (std::int32_t b = 0; b < cache->config_.batch; ++b) {
    if (counts[b] > 0) cache->held_from_[b] = std::max(cache->held_from_[b], totals[b] - cache->ring_size());
  }
}

// A task appends a block of one head's tokens.
void KeyValueStep::Piece::Append(std::int64_t index) const {
  const KeyValueCacheConfig& c = cache->config_;
  const kernels::KernelTable& kernels = kernels::Kernels();
  const AttentionArgs& call = step->call_;
  const auto block = static_cast<std::int32_t>(index % Blocks(rows));
  const std::int64_t head = index / Blocks(rows);
  const auto b = static_cast<std::int32_t>(head / c.kv_heads);
  const std::int64_t g = head % c.kv_heads;
  const std::int32_t end = std::min((block + 1) * kAppendRows, counts[b]);
  for (std::int32_t i = block * kAppendRows; i < end; ++i) {
    const auto offset = [&](const Strides& s) {
      return std::int64_t{b} * s.batch + g * s.head + (std::int64_t{first} + i) * s.row;
    };
    const float* const key = call.k + offset(call.k_strides);
    const float* const value = call.v + offset(call.v_strides);
    const std::int64_t row = head * c.capacity + cache->SlotOf(starts[b] + i);
    const std::int64_t key_cell = row * c.head_dim;
    const std::int64_t value_cell = row * c.value_dim;
    switch (c.cell_type) {
      case CellType::kFloat32:
        std::copy_n(key, c.head_dim, static_cast<float*>(cache->keys_) + key_cell);
        std::copy_n(value, c.value_dim, static_cast<float*>(cache->values_) + value_cell);
        break;
      case CellType::kFloat16:
        kernels.narrow_half(key, c.head_dim, static_cast<std::uint16_t*>(cache->keys_) + key_cell);
        kernels.narrow_half(value, c.value_dim, static_cast<std::uint16_t*>(cache->values_) + value_cell);
        break;
      case CellType::kInt8:
        cache->key_scales_[row] =
            kernels.narrow_int8(key, c.head_dim, static_cast<std::int8_t*>(cache->keys_) + key_cell);
        cache->value_scales_[row] =
            kernels.narrow_int8(value, c.value_dim, static_cast<std::int8_t*>(cache->values_) + value_cell);
        break;
    }
  }
}

void KeyValueStep::Piece::Grow() const {
  for (std::int32_t b = 0; b < cache->config_.batch; ++b) {
    cache->lengths_[b] = totals[b];
    if (cache->positions_ == nullptr) continue;
    const std::int32_t* const given = step->positions_ + std::int64_t{b} * step->call_.queries + first;
    for (std::int32_t i = 0; i < counts[b]; ++i) {
      cache->positions_[std::int64_t{b} * cache->config_.capacity + cache->SlotOf(starts[b] + i)] = given[i];
    }
  }
}

}  // namespace headwise
