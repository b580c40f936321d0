// Attention reference: which keys a query sees, and what dropout does to a weight, element by element, as the public API says
// it in words. The oracles' own: it shares nothing with what they judge, no interval, no mask of a tile, no generator.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "headwise/attention.h"

namespace headwise::reference {

// kvLengths: valid keys, S by default. qLengths: valid queries, L by default.
inline std::int64_t KeyLength(const AttentionArgs& a, std::int32_t b) {
  return a.kv_lengths != nullptr ? a.kv_lengths[b] : a.keys;
}
inline std::int64_t QueryLength(const AttentionArgs& a, std::int32_t b) {
  return a.q_lengths != nullptr ? a.q_lengths[b] : a.queries;
}

// Packed sequences: where the rows of batch entry b begin.
inline std::int32_t FirstQuery(const AttentionArgs& a, std::int32_t b) {
  return a.q_starts != nullptr ? a.q_starts[b] : 0;
}
inline std::int32_t FirstKey(const AttentionArgs& a, std::int32_t b) {
  return a.k_starts != nullptr ? a.k_starts[b] : 0;
}

// i + causalOffset; the offset is kvLength - qLength by default: the last query sees the last key.
inline std::int64_t QueryPosition(const AttentionArgs& a, std::int32_t b, std::int32_t i) {
  if (a.causal_offsets != nullptr) return std::int64_t{i} + a.causal_offsets[b];
  return i + KeyLength(a, b) - QueryLength(a, b);
}

// A key's place is its position; in a ring, that of the last token that was written to the slot.
inline std::int64_t KeyPosition(const AttentionArgs& a, std::int32_t b, std::int32_t j) {
  if (a.ring_size == 0 || j < a.sink_tokens) return j;
  std::int64_t position = j;
  while (position + a.ring_size < a.ring_totals[b]) position += a.ring_size;
  return position;
}

inline std::int64_t At(const BroadcastStrides& s, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  return std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row + std::int64_t{j} * s.column;
}

inline bool MaskShows(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  if (a.mask == nullptr) return true;
  if (a.mask_bits == 0) return a.mask[At(a.mask_strides, b, h, i, j)] != 0;
  const std::int32_t bit = a.mask_strides.column == 0 ? 0 : j;
  return (a.mask[At(a.mask_strides, b, h, i, 0) + bit / 8] >> (bit % 8) & 1) != 0;
}

// Whether the block mask lists the block of key j for that of query i.
inline bool BlockMaskShows(const AttentionArgs& a, std::int32_t i, std::int32_t j) {
  if (a.block_size == 0) return true;
  const std::int32_t row = i / a.block_size;
  for (std::int32_t n = a.block_rows[row]; n < a.block_rows[row + 1]; ++n) {
    if (a.block_columns[n] == j / a.block_size) return true;
  }
  return false;
}

inline double Bias(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  return a.bias == nullptr ? 0.0 : static_cast<double>(a.bias[At(a.bias_strides, b, h, i, j)]);
}

// alibiSlopes: bias -slope * |i + offset - j|.
inline double Alibi(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  if (a.alibi_slopes == nullptr) return 0.0;
  return -static_cast<double>(a.alibi_slopes[h]) *
         std::fabs(static_cast<double>(QueryPosition(a, b, i) - KeyPosition(a, b, j)));
}

inline bool Sees(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  if (i >= QueryLength(a, b) || j >= KeyLength(a, b)) return false;
  const std::int64_t query = QueryPosition(a, b, i);
  const std::int64_t key = KeyPosition(a, b, j);
  if (a.causal != 0 && key > query) return false;
  const bool sink = a.ring_size > 0 && j < a.sink_tokens;
  if (a.window_left >= 0 && key < query - a.window_left && !sink) return false;
  if (a.window_right >= 0 && key > query + a.window_right) return false;
  if (!MaskShows(a, b, h, i, j) || !BlockMaskShows(a, i, j)) return false;
  if (a.key_padding_mask != nullptr && a.key_padding_mask[std::int64_t{b} * a.keys + j] == 0) return false;
  return Bias(a, b, h, i, j) != -std::numeric_limits<double>::infinity();
}

// Philox-4x32 with ten rounds, as defined in Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011); its published known answers are a test. A round: two of the four words are multiplied by constants into 64 bits each; the low halves stay
// words, the high ones are added bit by bit to the other two words and the key. The key grows by Weyl constants.
inline std::array<std::uint64_t, 4> Philox(std::array<std::uint64_t, 4> x, std::uint64_t key0, std::uint64_t key1) {
  constexpr std::uint64_t kWord = std::uint64_t{1} << 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = x[0] * 0xD2511F53U;
    const std::uint64_t b = x[2] * 0xCD9E8D57U;
    x = {b / kWord ^ x[1] ^ key0, b % kWord, a / kWord ^ x[3] ^ key1, a % kWord};
    key0 = (key0 + 0x9E3779B9U) % kWord;
    key1 = (key1 + 0xBB67AE85U) % kWord;
  }
  return x;
}

// What the weight of key j is multiplied by: 0 with probability rate, else 1 / (1 - rate). The key is the seed, the counter
// (j / 4, i, h, b), and key j has word j % 4 of the block.
inline double DropoutFactor(const AttentionArgs& a, std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j) {
  const double rate = a.dropout_rate;
  if (rate == 0.0) return 1.0;
  if (rate == 1.0) return 0.0;
  const auto word = [](std::int32_t n) { return static_cast<std::uint64_t>(n); };
  const auto block = Philox({word(j / 4), word(i), word(h), word(b)}, a.dropout_seed_low, a.dropout_seed_high);
  const auto drawn = static_cast<double>(block[static_cast<std::size_t>(j % 4)]);  // 0 ... 2^32 - 1
  return drawn < std::floor(rate * 4294967296.0) ? 0.0 : 1.0 / (1.0 - rate);
}

}  // namespace headwise::reference
