// Cache: the memory of keys and values: life, copies, and tokens that leave.
#include "headwise/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/cells.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {
namespace {

constexpr std::uint64_t kMostCells = std::numeric_limits<std::int32_t>::max();

// Where everything lies in the cache's one block.
struct Places {
  std::int32_t* lengths;
  std::int32_t* held_from;
  std::int32_t* positions;
  unsigned char* keys;
  unsigned char* values;
  float* key_scales;
  float* value_scales;
  std::uint64_t bytes;

  Places(const KeyValueCacheConfig& c, void* block) {
    Carver carver(block);
    const std::uint64_t rows = CheckedMul(CheckedMul(Size(c.batch), Size(c.kv_heads)), Size(c.capacity));
    const std::uint64_t cell = CellBytes(c.cell_type);
    const std::uint64_t scales = c.cell_type == CellType::kInt8 ? rows : 0;
    for (std::int32_t** array : {&lengths, &held_from}) *array = carver.Take<std::int32_t>(Size(c.batch));
    positions = carver.Take<std::int32_t>(c.rope.dim == 0 ? 0 : CheckedMul(Size(c.batch), Size(c.capacity)));
    keys = carver.Take<unsigned char>(CheckedMul(CheckedMul(rows, Size(c.head_dim)), cell));
    values = carver.Take<unsigned char>(CheckedMul(CheckedMul(rows, Size(c.value_dim)), cell));
    key_scales = carver.Take<float>(scales);
    value_scales = carver.Take<float>(scales);
    bytes = carver.used();
    // The kernels' strides are of 32 bits.
    const std::uint64_t widest = static_cast<std::uint64_t>(std::max({c.head_dim, c.value_dim, 1}));
    if (CheckedMul(CheckedMul(Size(c.kv_heads), Size(c.capacity)), widest) > kMostCells) bytes = kTooLarge;
  }

 private:
  static std::uint64_t Size(std::int32_t size) { return static_cast<std::uint64_t>(size); }
};

Status CheckConfig(const KeyValueCacheConfig& c) {
  if (c.batch < 0) return Status::InvalidShape("batch");
  if (c.kv_heads < 0) return Status::InvalidShape("kv_heads");
  if (c.head_dim < 0) return Status::InvalidShape("head_dim");
  if (c.value_dim < 0) return Status::InvalidShape("value_dim");
  if (c.capacity < 0) return Status::InvalidShape("capacity");
  if (c.window < 0) return Status::InvalidValue("window");
  if (c.sink_tokens < 0 || (c.sink_tokens > 0 && c.window == 0)) return Status::InvalidValue("sink_tokens");
  if (c.window > 0 && c.capacity - c.sink_tokens < c.window) return Status::InvalidShape("capacity");
  if (c.sink_positions == SinkPositions::kCache && (c.sink_tokens == 0 || c.rope.dim == 0)) {
    return Status::InvalidValue("sink_positions");
  }
  return c.rope.dim == 0 ? Status::Ok() : CheckRotarySettings(c.rope, c.head_dim);
}

// Copies `count` tokens of one head, which follow one another in both places; they may overlap.
struct TokenCopy {
  const KeyValueCacheConfig& config;
  const Places& from;
  const Places& to;

  void operator()(std::int64_t source, std::int64_t target, std::int64_t count) const {
    const std::size_t cell = CellBytes(config.cell_type);
    Move(from.keys, to.keys, source, target, count, static_cast<std::size_t>(config.head_dim) * cell);
    Move(from.values, to.values, source, target, count, static_cast<std::size_t>(config.value_dim) * cell);
    if (config.cell_type != CellType::kInt8) return;
    Move(from.key_scales, to.key_scales, source, target, count, sizeof(float));
    Move(from.value_scales, to.value_scales, source, target, count, sizeof(float));
  }

 private:
  static void Move(const void* from, void* to, std::int64_t source, std::int64_t target, std::int64_t count,
                   std::size_t bytes) {
    const auto at = [bytes](std::int64_t row) { return static_cast<std::size_t>(row) * bytes; };
    std::memmove(static_cast<unsigned char*>(to) + at(target), static_cast<const unsigned char*>(from) + at(source),
                 at(count));
  }
};

struct ForkJob {
  const KeyValueCacheConfig* config;
  const std::int32_t* rows;
  const std::int32_t* lengths;  // of the target
  Places from, to;
};

// A task copies one head's tokens of one batch row.
void CopyHead(void* context, std::int64_t index, int /*thread*/) {
  const auto& job = *static_cast<const ForkJob*>(context);
  const KeyValueCacheConfig& c = *job.config;
  const std::int64_t b = index / c.kv_heads;
  const std::int64_t source_row = job.rows == nullptr ? b : job.rows[b];
  const std::int64_t source = (source_row * c.kv_heads + index % c.kv_heads) * c.capacity;
  TokenCopy{c, job.from, job.to}(source, index * c.capacity, std::min(job.lengths[b], c.capacity));
}

// Calls move(source, target, count) for stretches of slots, in the order of their places, so that every token is read before
// another one takes its slot.
template <class Move>
void MoveUp(std::int32_t begin, std::int32_t end, std::int32_t length, std::int32_t sinks, std::int32_t ring,
            const Move& move) {
  const auto slot = [=](std::int32_t place) {
    return place < sinks || ring == 0 ? place : sinks + (place - sinks) % ring;
  };
  if (ring == 0) {
    move(end, begin, length - end);
    return;
  }
  for (std::int32_t place = end; place < length; ++place) move(slot(place), slot(place - (end - begin)), 1);
}

struct DropJob {
  const KeyValueCacheConfig* config;
  const std::int32_t* begins;
  const std::int32_t* ends;
  const std::int32_t* lengths;  // before
  std::int32_t ring;
  Places places;
};

// A task moves one head's tokens of one batch row.
void DropInHead(void* context, std::int64_t index, int /*thread*/) {
  const auto& job = *static_cast<const DropJob*>(context);
  const KeyValueCacheConfig& c = *job.config;
  const std::int64_t b = index / c.kv_heads;
  if (job.begins[b] == job.ends[b]) return;
  const TokenCopy copy{c, job.places, job.places};
  const std::int64_t first = index * c.capacity;
  MoveUp(job.begins[b], job.ends[b], job.lengths[b], c.sink_tokens, job.ring,
         [&](std::int32_t from, std::int32_t to, std::int32_t count) { copy(first + from, first + to, count); });
}

}  // namespace

KeyValueCache::~KeyValueCache() { FreeAligned(memory_); }

std::uint64_t KeyValueCache::Bytes(const KeyValueCacheConfig& config) { return Places(config, nullptr).bytes; }

Status KeyValueCache::Init(const KeyValueCacheConfig& config) {
  if (const Status status = CheckConfig(config); !status.ok()) return status;
  KeyValueCacheConfig kept = config;
  RotaryArrays arrays;
  if (kept.rope.dim != 0) {
    if (const Status status = arrays.Keep(kept.rope); !status.ok()) return status;
  }
  if (const Status status = Allocate(kept); !status.ok()) return status;
  rope_arrays_ = arrays;
  return Status::Ok();
}

Status KeyValueCache::Allocate(const KeyValueCacheConfig& config) {
  const std::uint64_t bytes = Bytes(config);
  void* const memory = AllocateAligned(bytes);
  if (memory == nullptr) return Status::OutOfMemory(bytes);
  FreeAligned(memory_);
  memory_ = memory;
  config_ = config;
  const Places places(config, memory);
  lengths_ = places.lengths;
  held_from_ = places.held_from;
  positions_ = config.rope.dim == 0 ? nullptr : places.positions;
  keys_ = places.keys;
  values_ = places.values;
  key_scales_ = places.key_scales;
  value_scales_ = places.value_scales;
  for (std::int32_t* const numbers : {lengths_, held_from_}) std::fill_n(numbers, config.batch, 0);
  return Status::Ok();
}

Status KeyValueCache::InitFrom(const KeyValueCache& from, const std::int32_t* rows, std::int32_t count,
                               ThreadPool& pool) {
  KeyValueCacheConfig config = from.config_;
  if (rows != nullptr) config.batch = count;
  for (std::int32_t b = 0; rows != nullptr && b < count; ++b) {
    if (rows[b] < 0 || rows[b] >= from.config_.batch) return Status::InvalidValue("rows");
  }
  if (const Status status = Allocate(config); !status.ok()) return status;
  rope_arrays_ = from.rope_arrays_;
  for (std::int32_t b = 0; b < config.batch; ++b) {
    const std::int32_t row = rows == nullptr ? b : rows[b];
    lengths_[b] = from.lengths_[row];
    held_from_[b] = from.held_from_[row];
    if (positions_ == nullptr) continue;
    std::copy_n(from.positions_ + std::int64_t{row} * config.capacity, std::min(lengths_[b], config.capacity),
                positions_ + std::int64_t{b} * config.capacity);
  }
  ForkJob job{&config_, rows, lengths_, Places(from.config_, from.memory_), Places(config_, memory_)};
  pool.Run(0, std::int64_t{config.batch} * config.kv_heads, CopyHead, &job);
  return Status::Ok();
}

// Whether a row of `length` tokens has all that a query at its end, or the next token's, may see.
bool KeyValueCache::Leaves(std::int32_t b, std::int32_t length) const {
  const std::int32_t sinks = config_.sink_tokens;
  return config_.window == 0 || length <= sinks || held_from_[b] <= std::max(length - config_.window, sinks);
}

// Of the next token, unless a step says otherwise.
std::int32_t KeyValueCache::Next(std::int32_t b) const {
  return lengths_[b] == 0 ? 0 : positions_[std::int64_t{b} * config_.capacity + SlotOf(lengths_[b] - 1)] + 1;
}

void KeyValueCache::Shorten(std::int32_t b, std::int32_t length) {
  lengths_[b] = length;
  held_from_[b] = std::min(held_from_[b], length);
}

Status KeyValueCache::Trim(const std::int32_t* lengths) {
  if (busy_) return Status::InvalidValue("cache");
  for (std::int32_t b = 0; b < config_.batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > lengths_[b]) return Status::InvalidValue("length");
    if (lengths[b] < lengths_[b] && !Leaves(b, lengths[b])) return Status::InvalidValue("length");
  }
  for (std::int32_t b = 0; b < config_.batch; ++b) Shorten(b, lengths[b]);
  return Status::Ok();
}

Status KeyValueCache::Drop(const std::int32_t* begins, const std::int32_t* ends, ThreadPool& pool) {
  if (busy_) return Status::InvalidValue("cache");
  for (std::int32_t b = 0; b < config_.batch; ++b) {
    if (begins[b] < 0 || begins[b] > lengths_[b]) return Status::InvalidValue("begin");
    if (ends[b] < begins[b] || ends[b] > lengths_[b]) return Status::InvalidValue("end");
    if (begins[b] == ends[b]) continue;
    const bool whole = held_from_[b] <= config_.sink_tokens;
    if (ends[b] < lengths_[b] && !whole && begins[b] < held_from_[b]) return Status::InvalidValue("begin");
    if (!Leaves(b, lengths_[b] - (ends[b] - begins[b]))) return Status::InvalidValue("begin");
  }
  DropJob job{&config_, begins, ends, lengths_, ring_size(), Places(config_, memory_)};
  pool.Run(0, std::int64_t{config_.batch} * config_.kv_heads, DropInHead, &job);
  for (std::int32_t b = 0; b < config_.batch; ++b) {
    if (begins[b] == ends[b]) continue;
    if (positions_ != nullptr) {
      std::int32_t* const positions = positions_ + std::int64_t{b} * config_.capacity;
      MoveUp(begins[b], ends[b], lengths_[b], config_.sink_tokens, ring_size(),
             [positions](std::int32_t from, std::int32_t to, std::int32_t count) {
               std::memmove(positions + to, positions + from, static_cast<std::size_t>(count) * sizeof(std::int32_t));
             });
    }
    Shorten(b, lengths_[b] - (ends[b] - begins[b]));
  }
  return Status::Ok();
}

}  // namespace headwise
