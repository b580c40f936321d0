// Public: a Transformer's target read a few tokens at a time: the keys and values of what has been read are kept, so that a
// step costs what its own tokens cost. The logits are those of TransformerForward over the whole target.
#pragma once

#include <cstdint>

#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/kv_cache.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"
#include "headwise/transformer.h"

namespace headwise {

// What has been read of `rows` targets of one length and, with an encoder, of the source that they share. Owns its memory;
// holds nothing of the model but its sizes. Not thread-safe; not to be changed while a step is between two slices.
class TransformerDecoding {
 public:
  TransformerDecoding() = default;
  ~TransformerDecoding();
  TransformerDecoding(const TransformerDecoding&) = delete;
  TransformerDecoding& operator=(const TransformerDecoding&) = delete;

  // Nothing read yet; room for `capacity` tokens in each row. kInvalidValue "kind" for an encoder, kInvalidShape "rows" below
  // 1, "capacity" outside 1 ... most_positions. After a failure the object holds nothing.
  Status Init(const Transformer& model, std::int32_t rows, std::int32_t capacity);
  // Row b becomes what row rows[b] was: as many rows as `count` says, each any number of times. What was read of the source is
  // shared and not copied. kInvalidValue "rows" for a row that is not there; after a failure all is as before.
  Status Select(const std::int32_t* rows, std::int32_t count, ThreadPool& pool);

  std::int32_t rows() const { return rows_; }
  std::int32_t capacity() const { return capacity_; }
  // Tokens read in each row.
  std::int32_t length() const { return length_; }

 private:
  friend class TransformerDecodeStep;
  friend class TransformerBuild;

  bool Fits(const TransformerConfig& config) const;
  Status ReadSource(std::int32_t length, const std::uint8_t* mask);
  float* memory_keys(std::int32_t layer) { return memory_ + std::int64_t{2} * layer * source_length_ * kv_width_; }
  float* memory_values(std::int32_t layer) { return memory_keys(layer) + std::int64_t{source_length_} * kv_width_; }

  std::int32_t layers_ = 0;
  std::int32_t rows_ = 0;
  std::int32_t capacity_ = 0;
  std::int32_t length_ = 0;
  std::int32_t kv_heads_ = 0;
  std::int32_t kv_width_ = 0;            // of all key heads side by side
  KeyValueCache* caches_ = nullptr;      // [layers]: self-attention's
  bool cross_ = false;                   // there is an encoder
  bool source_read_ = false;             // memory_ holds what it is to hold
  std::int32_t source_length_ = 0;       // S
  float* memory_ = nullptr;              // for each layer keys and values of the encoder's output, [S, kv_width]
  std::uint8_t* source_mask_ = nullptr;  // [S], null: all are real tokens
};

// All pointers are borrowed for the length of the call.
struct TransformerDecodeArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/transformer_decode_args.def"  // its fields and what they mean
};

// A step in progress: Prepare, then run the job. The object outlives the job and does not move. Lengths grow in the job's last
// phase: a step that is given up has changed nothing, except that its source, if it brought one, must be brought again.
class TransformerDecodeStep {
 public:
  TransformerDecodeStep() = default;
  ~TransformerDecodeStep();
  TransformerDecodeStep(const TransformerDecodeStep&) = delete;
  TransformerDecodeStep& operator=(const TransformerDecodeStep&) = delete;

  // kInvalidShape "target": more tokens than there is room for. kInvalidValue: "decoding" of a model of other sizes, "source"
  // missing or out of range, "target" out of range, "cache": another step is in progress.
  Status Prepare(const TransformerDecodeArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Call;
  Call* call_ = nullptr;
};

}  // namespace headwise
