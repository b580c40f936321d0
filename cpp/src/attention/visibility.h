// Attention driver: which keys a query row sees, as far as lengths, causality and the window say: an interval of positions
// a row, and where in the keys those positions lie. Pure.
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
        right_(args.causal != 0 ? 0 : args.window_right),
        runs_{{0, keys_, 0}, {}, {}} {
    if (args.ring_size > 0) SetRing(args, args.ring_totals[b]);
  }

  // Row i stands at position i + offset among the keys.
  std::int64_t Position(std::int32_t i) const { return i + offset_; }
  std::int32_t queries() const { return queries_; }
  // Whether a key's place is not its position.
  bool ring() const { return ring_; }

  // The keys of row i, as positions; empty for rows past the batch's query length. Both ends grow with i. In a ring the
  // sink tokens below the end belong to it as well.
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

  // Rows that may see one of the keys first ... last - 1; with a ring, where keys are not in order, all of them.
  KeyRange RowsThatSee(std::int32_t first, std::int32_t last) const {
    if (ring_) return {0, queries_};
    const std::int64_t begin = right_ < 0 ? 0 : first - right_ - offset_;
    const std::int64_t end = left_ < 0 ? queries_ : last + left_ - offset_;
    return {static_cast<std::int32_t>(std::clamp<std::int64_t>(begin, 0, queries_)),
            static_cast<std::int32_t>(std::clamp<std::int64_t>(end, 0, queries_))};
  }

  // Calls see(begin, end) for every stretch of the keys first ... last - 1 that stands at positions of `range`, in
  // ascending order.
  template <class See>
  void ForEachVisible(KeyRange range, std::int32_t first, std::int32_t last, See&& see) const {
    const std::int32_t sinks_end = std::min(sinks_, range.end);
    for (const Run& run : runs_) {
      const std::int32_t begin = std::max(first, run.key);
      const std::int32_t end = std::min(last, run.key + run.keys);
      if (begin >= end) continue;
      const std::int32_t shift = run.position - run.key;
      const std::int32_t sinks = std::clamp(sinks_end - shift, begin, end);
      if (begin < sinks) see(begin, sinks);
      const std::int32_t from = std::max(sinks, range.begin - shift);
      const std::int32_t to = std::min(end, range.end - shift);
      if (from < to) see(from, to);
    }
  }

  // Calls each(begin, end, position of begin) for every stretch of the keys first ... last - 1 whose positions follow
  // one another.
  template <class Each>
  void ForEachRun(std::int32_t first, std::int32_t last, Each&& each) const {
    for (const Run& run : runs_) {
      const std::int32_t begin = std::max(first, run.key);
      const std::int32_t end = std::min(last, run.key + run.keys);
      if (begin < end) each(begin, end, begin + run.position - run.key);
    }
  }

  std::int32_t CountVisible(KeyRange range, std::int32_t first, std::int32_t last) const {
    std::int32_t count = 0;
    ForEachVisible(range, first, last, [&count](std::int32_t begin, std::int32_t end) { count += end - begin; });
    return count;
  }

 private:
  // Keys that stand at consecutive positions.
  struct Run {
    std::int32_t key = 0;
    std::int32_t keys = 0;
    std::int32_t position = 0;
  };

  // The sinks, then the latest lap up to its last token, then what is left of the lap before.
  void SetRing(const AttentionArgs& args, std::int32_t total) {
    ring_ = true;
    sinks_ = args.sink_tokens;
    const std::int32_t slots = keys_;
    keys_ = total;
    runs_[0] = {0, std::min(sinks_, total), 0};
    if (total <= sinks_) return;
    const std::int32_t behind = total - sinks_;
    const std::int32_t lap = (behind - 1) / args.ring_size * args.ring_size;  // tokens of the laps that are complete
    runs_[1] = {sinks_, behind - lap, sinks_ + lap};
    const std::int32_t key = sinks_ + behind - lap;
    if (lap > 0) runs_[2] = {key, slots - key, key + lap - args.ring_size};
  }

  std::int32_t keys_;
  std::int32_t queries_;
  std::int64_t offset_;
  std::int32_t left_;
  std::int32_t right_;
  Run runs_[3];
  std::int32_t sinks_ = 0;
  bool ring_ = false;
};

}  // namespace headwise
