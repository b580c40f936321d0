// Public: keys and values of a growing text, kept for decoding, and one step of it: append, then attend.
//
// Keys lie in rows [B,G,capacity,D], values in rows [B,G,capacity,Dv], ready for the kernels: a step reads them where they
// are, and an append writes its own rows and nothing else. Rows of a batch have lengths of their own.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/rotary.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Fixed-width fields only.
struct KeyValueCacheConfig {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/key_value_cache_config.def"  // its fields and what they mean
};

// Owns its memory. Not thread-safe; not to be changed while a step is between two slices.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  ~KeyValueCache();
  KeyValueCache(const KeyValueCache&) = delete;
  KeyValueCache& operator=(const KeyValueCache&) = delete;

  // Bytes that Init takes; kTooLarge when a stride would leave 32 bits.
  static std::uint64_t Bytes(const KeyValueCacheConfig& config);

  // Empty, of this shape. After a failure the object holds nothing.
  Status Init(const KeyValueCacheConfig& config);
  // A copy whose batch row b is `from`'s row rows[b] (null: every row, in order).
  Status InitFrom(const KeyValueCache& from, const std::int32_t* rows, std::int32_t count, ThreadPool& pool);

  const KeyValueCacheConfig& config() const { return config_; }
  // [B]: tokens appended and not trimmed, those that a ring has overwritten included.
  const std::int32_t* lengths() const { return lengths_; }
  // kInvalidValue when a length is above the row's, or when a ring has lost what would have to be there.
  Status Trim(const std::int32_t* lengths);

 private:
  friend class KeyValueStep;
  std::int32_t ring_size() const { return config_.window > 0 ? config_.capacity - config_.sink_tokens : 0; }
  std::int64_t rows() const { return std::int64_t{config_.batch} * config_.kv_heads * config_.capacity; }

  KeyValueCacheConfig config_;
  void* memory_ = nullptr;
  std::int32_t* lengths_ = nullptr;
  void* keys_ = nullptr;
  void* values_ = nullptr;
  float* key_scales_ = nullptr;  // kInt8, [B,G,capacity]
  float* value_scales_ = nullptr;
  bool busy_ = false;  // a step is in progress
};

// One step. Its tokens' keys and values are call.k [B,G,L,D] and call.v [B,G,L,Dv] through their strides, call.q_lengths
// says how many of the L count in each row (default all); kv_heads, head_dim and value_dim are the cache's, call.keys is
// the longest row after the step. The queries call.q are those of the same tokens; null: append only. Query i of row b
// stands at lengths()[b] + i; with call.causal it sees keys up to itself. With a window the call is causal, the window is
// the cache's, and mask, bias, padding mask, block mask, weights and scores are kInvalidValue. kv_lengths,
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
  // another step is in progress.
  Status Prepare(const KeyValueStepArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Piece;
  Status Check() const;
  Status Rotate(Job& job);
  Status AddPiece(std::int32_t first, std::int32_t rows, ThreadPool& pool, Job& job);
  std::int32_t Count(std::int32_t b) const { return call_.q_lengths != nullptr ? call_.q_lengths[b] : call_.queries; }

  KeyValueCache* cache_ = nullptr;
  AttentionArgs call_;
  RotaryArgs key_rotation_;
  RotaryArgs query_rotation_;
  std::int32_t* starts_ = nullptr;  // [B]: lengths before the step
  float* rotated_ = nullptr;
  Piece* pieces_ = nullptr;
  bool claimed_ = false;  // cache_->busy_ is ours
};

}  // namespace headwise
