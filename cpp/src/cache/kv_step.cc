// Cache: one step: rotate, append, attend, and only then grow. Start reading at Prepare.
#include <algorithm>

#include "cache/kv_piece.h"
#include "headwise/kv_cache.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {

KeyValueStep::~KeyValueStep() {
  if (claimed_) cache_->busy_ = false;
  for (Piece* piece = pieces_; piece != nullptr;) {
    Piece* const next = piece->next;
    Piece::Destroy(piece);
    piece = next;
  }
  FreeAligned(memory_);
}

// Of row i of the step in the text.
std::int32_t KeyValueStep::Position(std::int32_t b, std::int32_t i) const {
  if (given_positions_ != nullptr) return given_positions_[std::int64_t{b} * call_.queries + i];
  return cache_->Next(b) + i - (reads_ ? Count(b) : 0);
}

Status KeyValueStep::CheckRow(std::int32_t b) const {
  const KeyValueCacheConfig& c = cache_->config_;
  if (Count(b) < 0 || Count(b) > call_.queries) return Status::InvalidValue("q_lengths");
  const std::int32_t length = cache_->lengths_[b];
  if (reads_) {
    const std::int32_t seen = std::max(length - Count(b) - c.window + 1, c.sink_tokens);
    const bool there = Count(b) == 0 || c.window == 0 || length <= c.sink_tokens || cache_->held_from_[b] <= seen;
    return there ? Status::Ok() : Status::InvalidValue("q");
  }
  // Positions are of 32 bits; half of them leaves room for the windows' arithmetic.
  const std::int64_t most = c.window > 0 ? std::int64_t{1} << 30 : c.capacity;
  return std::int64_t{length} + Count(b) > most ? Status::InvalidShape("k") : Status::Ok();
}

Status KeyValueStep::Check() const {
  const KeyValueCacheConfig& c = cache_->config_;
  if (cache_->busy_) return Status::InvalidValue("cache");
  if (call_.batch != c.batch) return Status::InvalidShape("batch");
  if (call_.kv_heads != c.kv_heads) return Status::InvalidShape("kv_heads");
  if (call_.head_dim != c.head_dim) return Status::InvalidShape("head_dim");
  if (call_.value_dim != c.value_dim) return Status::InvalidShape("value_dim");
  if (call_.queries < 0) return Status::InvalidShape("queries");
  if (reads_ && call_.q == nullptr && call_.queries > 0) return Status::InvalidValue("q");
  if (given_positions_ != nullptr && c.rope.dim == 0) return Status::InvalidValue("positions");
  const bool empty = reads_ || c.batch == 0 || c.kv_heads == 0 || call_.queries == 0;
  if (!empty && c.head_dim > 0 && call_.k == nullptr) return Status::InvalidValue("k");
  if (!empty && c.value_dim > 0 && call_.v == nullptr) return Status::InvalidValue("v");
  std::int32_t longest = 0;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    if (const Status status = CheckRow(b); !status.ok()) return status;
    longest = std::max(longest, cache_->lengths_[b] + (reads_ ? 0 : Count(b)));
  }
  if (c.window == 0) return call_.q != nullptr && call_.keys != longest ? Status::InvalidShape("keys") : Status::Ok();
  if (call_.causal == 0 && call_.q != nullptr) return Status::InvalidValue("causal");
  if (call_.mask != nullptr) return Status::InvalidValue("mask");
  if (call_.bias != nullptr) return Status::InvalidValue("bias");
  if (call_.key_padding_mask != nullptr) return Status::InvalidValue("key_padding_mask");
  if (call_.block_size != 0) return Status::InvalidValue("block_size");
  if (call_.weights != nullptr) return Status::InvalidValue("weights");
  if (call_.scores != nullptr) return Status::InvalidValue("scores");
  if (c.sink_positions == SinkPositions::kText) return Status::Ok();
  if (call_.alibi_slopes != nullptr) return Status::InvalidValue("alibi_slopes");
  return call_.dropout_rate > 0.0F ? Status::InvalidValue("dropout_rate") : Status::Ok();
}

// Whether a query is turned otherwise against the sink tokens than against the others.
bool KeyValueStep::SeesFarSinks() const {
  const KeyValueCacheConfig& c = cache_->config_;
  if (c.sink_positions != SinkPositions::kCache || call_.q == nullptr) return false;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    for (std::int32_t i = 0; i < Count(b); ++i) {
      if (Position(b, i) >= c.sink_tokens + c.window) return true;
    }
  }
  return false;
}

// The step's own memory. Turned keys and queries have the strides of [B,G,L,D].
Status KeyValueStep::Allocate() {
  const KeyValueCacheConfig& c = cache_->config_;
  const auto size = [](std::int32_t n) { return static_cast<std::uint64_t>(n); };
  const std::uint64_t rows = size(c.batch) * size(call_.queries);
  const std::uint64_t head_rows = CheckedMul(rows, size(call_.heads));
  const bool turns = c.rope.dim > 0;
  const auto walk = [&](void* block) {
    const auto when = [](bool wanted, std::uint64_t count) { return wanted ? count : 0; };
    Carver carver(block);
    starts_ = carver.Take<std::int32_t>(size(c.batch));
    text_lengths_ = carver.Take<std::int32_t>(when(turns, size(c.batch)));
    positions_ = carver.Take<std::int32_t>(when(turns, rows));
    sink_positions_ = carver.Take<std::int32_t>(when(apart_, rows));
    const std::uint64_t keys = CheckedMul(CheckedMul(rows, size(c.kv_heads)), size(c.head_dim));
    const std::uint64_t queries = CheckedMul(head_rows, size(c.head_dim));
    turned_keys_ = carver.Take<float>(when(turns && !reads_, keys));
    turned_queries_ = carver.Take<float>(when(turns && call_.q != nullptr, queries));
    sink_queries_ = carver.Take<float>(when(apart_, queries));
    outputs_ = carver.Take<float>(when(apart_, CheckedMul(CheckedMul(2, head_rows), size(c.value_dim))));
    log_sum_exps_ = carver.Take<float>(when(apart_, CheckedMul(2, head_rows)));
    log_sum_exp_ = carver.Take<float>(when(apart_ && call_.log_sum_exp == nullptr, head_rows));
    return carver.used();
  };
  const std::uint64_t bytes = walk(nullptr);
  memory_ = AllocateAligned(bytes);
  if (memory_ == nullptr) return Status::OutOfMemory(bytes);
  walk(memory_);
  for (std::int32_t b = 0; b < c.batch; ++b) starts_[b] = cache_->lengths_[b] - (reads_ ? Count(b) : 0);
  return Status::Ok();
}

// From then on the turned keys and queries are the call's.
Status KeyValueStep::Rotate(Job& job) {
  const KeyValueCacheConfig& c = cache_->config_;
  const std::int32_t farthest = c.sink_tokens + c.window - 1;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    text_lengths_[b] = 0;
    for (std::int32_t i = 0; i < call_.queries; ++i) {
      const std::int64_t at = std::int64_t{b} * call_.queries + i;
      positions_[at] = Position(b, i);
      if (i < Count(b)) text_lengths_[b] = std::max(text_lengths_[b], positions_[at] + 1);
      if (apart_) sink_positions_[at] = std::min(positions_[at], farthest);
    }
  }
  const auto add = [&](RotaryArgs& args, std::int32_t heads, const std::int32_t* positions, const float* x,
                       const Strides& strides, float* y) {
    args.batch = c.batch;
    args.heads = heads;
    args.rows = call_.queries;
    args.size = c.head_dim;
    args.rope = c.rope;
    args.x = x;
    args.y = y;
    args.x_strides = strides;
    args.y_strides = {heads * call_.queries * c.head_dim, call_.queries * c.head_dim, c.head_dim};
    args.row_positions = positions;
    args.row_positions_batch = call_.queries;
    args.counts = call_.q_lengths;
    args.lengths = text_lengths_;
    return AddRotary(args, job);
  };
  if (!reads_) {
    const Status status = add(key_rotation_, c.kv_heads, positions_, call_.k, call_.k_strides, turned_keys_);
    if (!status.ok()) return status;
    call_.k = turned_keys_;
    call_.k_strides = key_rotation_.y_strides;
  }
  if (call_.q == nullptr) return Status::Ok();
  Status status = add(query_rotation_, call_.heads, positions_, call_.q, call_.q_strides, turned_queries_);
  if (status.ok() && apart_) {
    status = add(sink_rotation_, call_.heads, sink_positions_, call_.q, call_.q_strides, sink_queries_);
  }
  call_.q = turned_queries_;
  call_.q_strides = query_rotation_.y_strides;
  return status;
}

// Joins what the ring's tokens and the sink tokens give.
Status KeyValueStep::AddMerging(Job& job) {
  merge_.parts = 2;
  merge_.batch = call_.batch;
  merge_.heads = call_.heads;
  merge_.rows = call_.queries;
  merge_.size = call_.value_dim;
  merge_.outputs = outputs_;
  merge_.log_sum_exps = log_sum_exps_;
  merge_.out = call_.out;
  merge_.log_sum_exp = call_.log_sum_exp != nullptr ? call_.log_sum_exp : log_sum_exp_;
  merge_.strides = {call_.heads * call_.queries * call_.value_dim, call_.queries * call_.value_dim, call_.value_dim};
  merge_.out_strides = call_.out_strides;
  merge_.sinks = call_.sinks;
  return AddMerge(merge_, job);
}

Status KeyValueStep::Prepare(const KeyValueStepArgs& args, ThreadPool& pool, Job& job) {
  cache_ = args.cache;
  call_ = args.call;
  reads_ = args.read_only != 0;
  given_positions_ = args.positions;
  if (const Status status = Check(); !status.ok()) return status;
  cache_->busy_ = claimed_ = true;
  apart_ = SeesFarSinks();
  if (const Status status = Allocate(); !status.ok()) return status;
  if (cache_->config_.rope.dim > 0 && call_.queries > 0) {
    if (const Status status = Rotate(job); !status.ok()) return status;
  }
  // A piece overwrites no key that its own first query, or the next one should it be given up, still sees.
  const std::int32_t ring = cache_->ring_size();
  const std::int32_t most = ring > 0 && !reads_ ? ring - cache_->config_.window + 1 : std::max(call_.queries, 1);
  for (std::int32_t first = 0; first < call_.queries; first += most) {
    if (const Status status = AddPiece(first, std::min(most, call_.queries - first), pool, job); !status.ok()) {
      return status;
    }
  }
  return apart_ ? AddMerging(job) : Status::Ok();
}

}  // namespace headwise
