// Public: keys and values of a growing text, kept for decoding, and one step of it: append, then attend.
//
// Keys lie in rows [B,G,capacity,D], values in rows [B,G,capacity,Dv], ready for the kernels: a step reads them where they
// are, and an append writes its own rows and nothing else. Rows of a batch have lengths of their own.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/merge.h"
#include "headwise/rotary.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// What the sink tokens' distance to a query is measured by, with a rotary embedding.
enum class SinkPositions : std::int32_t {
  kText = 0,  // positions in the text
  // Positions in the cache (Xiao et al., "StreamingLLM", 2023, section 3.2): against sink tokens a query is turned as at
  // min(p, sink_tokens + window - 1), p being its position. ALiBi and dropout do not go with it.
  kCache = 1,
};

// Fixed-width fields only.
struct KeyValueCacheConfig {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/key_value_cache_config.def"  // its fields and what they mean
};

// Owns its memory. Not thread-safe; not to be changed while a step is between two slices.
//
// A token has a place, 0 ... length - 1 in its row, which is what causality, windows, masks and ALiBi go by, and with a
// rotary embedding the position that its key was turned by. Tokens that leave let those behind them move up; they keep
// their turn. Unless a step says otherwise its tokens' positions follow that of the row's last token; the first is 0.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  ~KeyValueCache();
  KeyValueCache(const KeyValueCache&) = delete;
  KeyValueCache& operator=(const KeyValueCache&) = delete;

  // Bytes that Init takes, but for the rotary embedding's arrays; kTooLarge when a stride would leave 32 bits.
  static std::uint64_t Bytes(const KeyValueCacheConfig& config);

  // Empty, of this shape, with copies of the rotary embedding's arrays. After a failure the object is as before.
  Status Init(const KeyValueCacheConfig& config);
  // A copy whose batch row b is `from`'s row rows[b] (null: every row, in order).
  Status InitFrom(const KeyValueCache& from, const std::int32_t* rows, std::int32_t count, ThreadPool& pool);

  const KeyValueCacheConfig& config() const { return config_; }
  // [B]: tokens appended and neither trimmed nor dropped, those that a ring has overwritten included.
  const std::int32_t* lengths() const { return lengths_; }
  // With a window, [B]: behind the sink tokens those at this place and later are there; the ring has lost earlier ones.
  const std::int32_t* held_from() const { return held_from_; }
  // Forgets all tokens behind the first lengths[b]. kInvalidValue "length": above the row's, or some of the last `window`
  // tokens that would be left are lost.
  Status Trim(const std::int32_t* lengths);
  // Takes the tokens at places begins[b] ... ends[b] - 1 out. kInvalidValue "begin" or "end": not 0 <= begin <= end <=
  // length; "begin" also when a ring has lost a token that would move up, or some of the last `window` that would be left.
  Status Drop(const std::int32_t* begins, const std::int32_t* ends, ThreadPool& pool);

 private:
  friend class KeyValueStep;
  Status Allocate(const KeyValueCacheConfig& config);
  std::int32_t Next(std::int32_t b) const;
  void Shorten(std::int32_t b, std::int32_t length);
  bool Leaves(std::int32_t b, std::int32_t length) const;
  std::int32_t ring_size() const { return config_.window > 0 ? config_.capacity - config_.sink_tokens : 0; }
  std::int32_t SlotOf(std::int32_t place) const {
    const std::int32_t sinks = config_.sink_tokens;
    const std::int32_t ring = ring_size();
    return ring == 0 || place < sinks ? place : sinks + (place - sinks) % ring;
  }

  KeyValueCacheConfig config_;
  RotaryArrays rope_arrays_;
  void* memory_ = nullptr;
  std::int32_t* lengths_ = nullptr;
  std::int32_t* held_from_ = nullptr;
  std::int32_t* positions_ = nullptr;  // with a rotary embedding, [B,capacity]: of each slot's token
  void* keys_ = nullptr;
  void* values_ = nullptr;
  float* key_scales_ = nullptr;  // kInt8, [B,G,capacity]
  float* value_scales_ = nullptr;
  bool busy_ = false;  // a step is in progress
};

// One step. Its tokens' keys and values are call.k [B,G,L,D] and call.v [B,G,L,Dv] through their strides, call.q_lengths
// says how many of the L count in each row (default all); kv_heads, head_dim and value_dim are the cache's, call.keys is
// the longest row after the step. The queries call.q are those of the same tokens; null: append only. Query i of row b
// stands at place lengths()[b] + i; with call.causal it sees keys up to itself. With a window the call is causal, the
// window is the cache's, and mask, bias, padding mask, block mask, weights and scores are kInvalidValue. kv_lengths,
// causal_offsets and whatever belongs to packed sequences, cells and rings are the cache's: what stands there is not read.
struct KeyValueStepArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/key_value_step_args.def"  // its fields and what they mean
};

// A step in progress: Prepare, then run the job. The object outlives the job and does not move. The lengths grow in the
// job's last phase: a step that is given up has changed nothing (with a window and more tokens than the ring has room for
// beside the window, it goes piece by piece, and those that are done stay).
class KeyValueStep {
 public:
  KeyValueStep() = default;
  ~KeyValueStep();
  KeyValueStep(const KeyValueStep&) = delete;
  KeyValueStep& operator=(const KeyValueStep&) = delete;

  // kInvalidShape "k": the cache is full, that is, some row would be longer than the capacity. kInvalidValue "cache":
  // another step is in progress; "q": a ring has lost keys that a reading query's window wants.
  Status Prepare(const KeyValueStepArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Piece;
  Status Check() const;
  Status CheckRow(std::int32_t b) const;
  Status Allocate();
  Status Rotate(Job& job);
  Status AddPiece(std::int32_t first, std::int32_t rows, ThreadPool& pool, Job& job);
  Status AddAttention(Piece& piece, ThreadPool& pool, Job& job);
  Status AddMerging(Job& job);
  std::int32_t Count(std::int32_t b) const { return call_.q_lengths != nullptr ? call_.q_lengths[b] : call_.queries; }
  std::int32_t Position(std::int32_t b, std::int32_t i) const;
  bool SeesFarSinks() const;

  KeyValueCache* cache_ = nullptr;
  AttentionArgs call_;
  const std::int32_t* given_positions_ = nullptr;
  bool reads_ = false;    // and appends nothing
  bool apart_ = false;    // sink tokens are attended to apart, by queries turned otherwise
  bool claimed_ = false;  // cache_->busy_ is ours
  void* memory_ = nullptr;
  std::int32_t* starts_ = nullptr;          // [B]: places of row 0
  std::int32_t* positions_ = nullptr;       // [B,L]
  std::int32_t* text_lengths_ = nullptr;    // [B]: one more than the largest position
  std::int32_t* sink_positions_ = nullptr;  // [B,L]: of queries, against sink tokens
  float* turned_keys_ = nullptr;
  float* turned_queries_ = nullptr;
  float* sink_queries_ = nullptr;
  float* outputs_ = nullptr;       // [2,B,H,L,Dv]: of the ring, of the sink tokens
  float* log_sum_exps_ = nullptr;  // [2,B,H,L]
  float* log_sum_exp_ = nullptr;   // [B,H,L], where nobody else wants it
  RotaryArgs key_rotation_;
  RotaryArgs query_rotation_;
  RotaryArgs sink_rotation_;
  MergeArgs merge_;
  Piece* pieces_ = nullptr;
};

}  // namespace headwise
