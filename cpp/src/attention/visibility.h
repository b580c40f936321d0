// Attention driver: which keys a query row sees, as far as lengths, causality and the window say: one interval a row. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headwise/attention.h"

namespace headwise {

struct KeyRange {
  std::int32_t begin;
  std::int32_t end;
  bool empty() const { return begin >= end; }
};

// One batch's limits.
class Visibility {
 public:
  Visibility(const AttentionArgs& args, std::int32_t b)
      : keys_(args.kv_lengths != nullptr ? args.kv_lengths[b] : args.keys),
        queries_(args.q_lengths != nullptr ? args.q_lengths[b] : args.queries),
        offset_(args.causal_offsets != nullptr ? args.causal_offsets[b] : std::int64_t{keys_} - queries_),
        left_(args.window_left),
        right_(args.causal != 0 ? 0 : args.window_right) {}

  // Row i stands at position i + offset among the keys.
  std::int64_t Position(std::int32_t i) const { return i + offset_; }
  std::int32_t queries() const { return queries_; }

  // The keys of row i; empty for rows past the batch's query length. Both ends grow with i.
  KeyRange Row(std::int32_t i) const {
    if (i >= queries_) return {0, 0};
    const std::int64_t position = Position(i);
    const std::int64_t begin = left_ < 0 ? 0 : position - left_;
    const std::int64_t end = right_ < 0 ? keys_ : position + right_ + 1;
    return {static_cast<std::int32_t>(std::clamp<std::int64_t>(begin, 0, keys_)),
            static_cast<std::int32_t>(std::clamp<std::int64_t>(end, 0, keys_))};
  }

  // Keys that some row of first ... last - 1 sees, and those that all of them see.
  KeyRange Union(std::int32_t first, std::int32_t last) const {
    last = std::min(last, queries_);
    if (first >= last) return {0, 0};
    return {Row(first).begin, Row(last - 1).end};
  }
  KeyRange Intersection(std::int32_t first, std::int32_t last) const {
    if (first >= last || last > queries_) return {0, 0};
    return {Row(last - 1).begin, Row(first).end};
  }

 private:
  std::int32_t keys_;
  std::int32_t queries_;
  std::int64_t offset_;
  std::int32_t left_;
  std::int32_t right_;
};

}  // namespace headwise
